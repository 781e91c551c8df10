"""Dead letters after the fact: found again where a pipeline left them, looked at, repaired and sent once more."""
