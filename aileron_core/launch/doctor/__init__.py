"""What `aileron doctor` looks at: agents, machine, neighbours, Aileron's own code, the home."""
