"""The tuner, scripts/tune_mi50.py: enumerate, build, check, time, choose, write."""
