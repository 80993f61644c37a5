"""The home folder: its layout, who owns it, and HTTP to the console that has it open."""
