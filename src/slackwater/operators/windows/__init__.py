"""The window step: kinds of windows, triggers, panes, late rows, its FRONT part and its KEYED part."""
