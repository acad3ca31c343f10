// Clang's offload bundle: one file with a code object for each of several targets.
#pragma once

#include <cstdint>
#include <span>

#include "device/card.h"

namespace fasim {

// The bytes of the raw ELF code object in `image` that fits the card. `image` may be that ELF
// itself or an uncompressed bundle. Throws LoadError when it is neither, or when no entry fits.
std::span<const uint8_t> select_code_object(std::span<const uint8_t> image, const Card& card);

// How many bytes the image that starts at `data` has, read from its own headers: for
// hipModuleLoadData, which is told no size.
size_t image_size(const void* data);

}  // namespace fasim
