"""Help, version, and command lines that are none."""

import subprocess

from program import TREBLE, ProgramTest, main

COMMANDS = ("answer", "encode", "inspect", "bench", "eval", "quantize")


class Help(ProgramTest):
    def test_every_command_explains_itself(self):
        for command in COMMANDS:
            text = self.run_treble("help", command).stdout
            self.assertTrue(text.startswith(f"treble {command} - "), text)
            self.assertRegex(text, rf"(?m)^usage: treble {command} ")
            self.assertIn("\nexit status: 0 answered, 1 internal, 2 arguments, 3 request, 4 checkpoint, 5 device.\n",
                          text)
            self.assertRegex(text, rf"(?m)^example: treble {command} ")
            self.assertLessEqual(max(map(len, text.splitlines())), 120)
            self.assertEqual(self.run_treble(command, "--help").stdout, text)
            self.assertEqual(self.run_treble(command, "-h").stdout, text)

    def test_options_of_answer_are_listed(self):
        text = self.run_treble("help", "answer").stdout
        for option in ("--model DIR", "--format NAME", "--logits", "--confidence KIND", "--max-tokens N",
                       "--truncate-state", "--pretokenizer NAME", "--device NAME", "--threads N", "--precision TYPE",
                       "--weights FORMAT", "--int8-activations MODE", "--embeddings WHERE", "--kernels SET",
                       "--pass-tokens N", "--memory-limit BYTES", "--vision WHEN", "--jsonl", "--out FILE",
                       "--resume", "--force"):
            self.assertRegex(text, rf"(?m)^  {option} +\S")

    def test_program_lists_its_commands(self):
        text = self.run_treble("help").stdout
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command} +\S")
        self.assertIn("exit status: ", text)
        self.assertEqual(self.run_treble("--help").stdout, text)
        alone = self.run_treble(status=2)
        self.assertEqual((alone.stdout, alone.stderr), ("", text))

    def test_version(self):
        self.assertRegex(self.run_treble("--version").stdout, r"\Atreble \d+\.\d+\.\d+\n\Z")

    def test_a_stderr_that_is_full_does_not_change_the_status(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TREBLE, "anser"], stdin=subprocess.DEVNULL, stderr=full, check=False)
        self.assertEqual(done.returncode, 2)

    def test_unknown_commands(self):
        self.check_refused(["anser"], 2, '"anser"', "treble help")
        self.check_refused(["help", "anser"], 2, '"anser"')
        self.check_refused(["--bogus"], 2, "--bogus")
        self.check_refused(["\x1b[2J"], 2, "no command")
        self.check_refused(["help", "serve"], 2, "serve")


if __name__ == "__main__":
    main()
