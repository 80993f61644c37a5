"""The port between the core and a front end: intents go in, events come out, nothing is awaited.

All values are frozen because they cross threads. Text in them is hostile unless a field says otherwise;
`aileron_core.text` draws it.
"""
