"""Operating-system containment of agents: the bubblewrap sandbox, Landlock, seccomp and a private git."""
