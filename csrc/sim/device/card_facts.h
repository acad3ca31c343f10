// The facts of the card that is simulated, from lib/sim/cards.json, which the build makes of
// configs/gfx906.toml.
#pragma once

#include "device/card.h"
#include "timing/card_timing.h"

namespace fasim {

struct CardFacts {
  Card card;
  CardTiming timing;
};

// The card that FLASHATTN_SIM_CARD names by its key ("mi50", "mi60", "radeon_vii"; default: the
// first). Read once. Throws std::runtime_error that names the file and what is wrong with it.
const CardFacts& card_facts();

}  // namespace fasim
