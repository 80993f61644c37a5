"""The pages of rows: activity, audit, library, sessions."""
