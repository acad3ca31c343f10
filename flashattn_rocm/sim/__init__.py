"""The simulated card as an instrument: its validation against published figures."""
