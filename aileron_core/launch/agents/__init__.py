"""The agents that `aileron launch` knows: one module each."""
