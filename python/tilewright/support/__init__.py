"""Parts that all other packages share and that do not depend on programs: argument checks, messages, names, machine."""
