"""Tests of the connector, in Aileron's sandbox and against service.py: python3 test.py

Build it first. Only Python's standard library and the command `aileron` are needed.
"""

import json
import shutil
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import service

FOLDER = Path(__file__).resolve().parent


def aileron(*words):
    """Run `aileron` and return what it printed as JSON."""
    done = subprocess.run(["aileron", *words, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class ConnectorTest(unittest.TestCase):
    def setUp(self):
        self.service = service.listen()
        threading.Thread(target=self.service.serve_forever, daemon=True).start()
        self.addCleanup(self.service.server_close)
        self.addCleanup(self.service.shutdown)

    def op(self, name, *options, **arguments):
        """Run one op, and return its output or its failure."""
        route = f"{service.HOST}=127.0.0.1:{self.service.server_port}"
        result = aileron(
            *("connector", "run", str(FOLDER), name, "--args", json.dumps(arguments)),
            *("--route", route, *options),
        )
        return result["output"] if result["status"] == "completed" else result["failure"]

    def test_the_folder_can_be_installed(self):
        self.assertEqual(aileron("connector", "check", str(FOLDER))["problems"], [])
        self.assertEqual(aileron("action", "check", str(FOLDER / "actions"))["problems"], [])

    def test_a_note_is_read_exactly(self):
        for note in self.service.notes.values():
            self.assertEqual(self.op("get_note", id=note["id"]), note)

    def test_a_note_is_edited(self):
        text = 'Milk 🥛\n"Bread" \\ Brötchen\n'
        edited = self.op("edit_note", id="1", text=text)
        self.assertEqual((edited["text"], self.service.notes["1"]["text"]), (text, text))
        self.assertEqual(edited["revision"], 2**53 + 1)

    def test_a_preview_cannot_edit(self):
        before = dict(self.service.notes["1"])
        self.assertEqual(self.op("get_note", "--read-only", id="1"), before)
        failure = self.op("edit_note", "--read-only", id="1", text="x")
        self.assertEqual(failure["class"], "capability_denied")
        self.assertEqual(self.service.notes["1"], before)

    def test_what_is_wrong_is_said(self):
        failure = self.op("get_note", id="2")
        self.assertEqual(failure["class"], "external_api_error")
        self.assertIn("404: there is no such note", failure["message"])
        failure = self.op("edit_note", id="1")
        self.assertEqual(failure["class"], "connector_runtime_error")
        self.assertIn("argument text is missing", failure["message"])
        self.assertIn("no op nonsense", self.op("nonsense")["message"])


if __name__ == "__main__":
    if shutil.which("aileron") is None:
        sys.exit(
            "The command `aileron` is not on PATH. Activate the environment in which it is installed."
        )
    unittest.main()
