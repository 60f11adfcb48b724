// pipe_sync(): wait for every pipe of the core. Simulated cores execute in order, so nothing is outstanding.
#pragma once

inline void pipe_sync() {}
