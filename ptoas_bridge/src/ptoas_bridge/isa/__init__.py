"""Header-only CPU implementation of the PTO tile instructions; include/ goes on the compiler's include path."""
