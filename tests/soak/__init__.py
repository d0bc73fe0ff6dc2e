"""The soak: searches of all families while kernels, helpers, tuners and the database fail. See scripts/soak."""
