"""Model traffic through the console, untouched: `<url>/gw/<gateway token>/...`."""
