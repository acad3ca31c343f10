"""Parts of scripts/demo.py."""
