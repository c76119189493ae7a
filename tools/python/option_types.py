"""Writes hoist/_option_types.py from the options of the program:

    hoist help --json - | python3 tools/python/option_types.py > tools/python/hoist/_option_types.py
"""

import json
import sys
from typing import Any

#: Classes with the command of their options, the groups (all if empty), and options that the package sets itself.
CLASSES = (
    ("ModelOptions", "inspect", {"Sizes", "Device", "Speed", "Checks", "Expert"}, set()),
    ("CompileOptions", "compile", set(), {"output", "budget", "print_after", "stop_after"}),
    ("ChooseOptions", "report", set(), {"output", "budget", "compare"}),
    ("BundleOptions", "bench", {"Sizes", "Device"}, set()),
    ("EvaluateOptions", "evaluate", set(), {"data", "against"}),
    ("VerifyOptions", "verify", set(), set()),
    ("ExportOptions", "export", set(), {"output", "model", "dim", "value"}),
    ("GradientOptions", "grad", set(), {"output", "of", "wrt"}),
    ("TrainOptions", "train", set(), {"output", "data", "heads"}),
)

BY_NAME = {"tune": "bool | float", "preferences": "FileName | Sequence[str]", "rule": "str | Sequence[str]",
           "bound": "Mapping[str, int]", "pass_": "Mapping[str, str]"}
BY_ARGUMENT = {
    "": "bool", "N": "int", "STEP": "int", "SECONDS": "float", "GIB": "float", "MIB": "float", "NUMBER": "str | float",
    "NUMBER,...": "float | Sequence[float]", "N|WxH": "int | str", "NAME=N": "Mapping[str, int | Sequence[int]]",
    "NAME=VALUE": "Mapping[str, Any]", "INPUT=VALUE": "Mapping[str, Any]", "INPUT=OUTPUT": "str | Mapping[str, str]", "LAYER=FILE": "Mapping[str, FileName]", "FILE": "FileName",
    "FILE|NAME": "FileName", "FILE|shipped": "FileName", "DIR": "FileName", "DATA": "Data", "DEVICE": "str | int",
    "FILE|TARGET,...": "str | Sequence[str]", "RATE": "float", "X": "float", "NORM": "float", "SHARE": "float", "T": "float",
    "DATA|SHARE": "Data | float", "PATTERN,...": "str | Sequence[str]", "CHANGE,...": "str | Sequence[str]",
    "NAME,...": "str | Sequence[str]", "N|auto": "int | str",
}


def keyword(name: str) -> str:
    word = name.removeprefix("--").replace("-", "_")
    return "pass_" if word == "pass" else word


def main() -> None:
    commands: dict[str, Any] = {each["name"]: each for each in json.load(sys.stdin)["commands"]}
    print('"""Written by tools/python/option_types.py: options of the program as keyword arguments."""\n\n'
          "from __future__ import annotations\n\n"
          "import os\nfrom typing import Any, Mapping, Sequence, TypedDict, Union\n\n"
          'FileName = Union[str, "os.PathLike[str]"]\n'
          "#: Arrays by the name of the model's input, [samples][the input's axes after the first], and \"labels\"; or a "
          "path.\n"
          "Data = Union[FileName, Mapping[str, Any]]")
    old: set[str] = set()
    for name, command, groups, left_out in CLASSES:
        print(f'\n\nclass {name}(TypedDict, total=False):\n    """`hoist {command} --help` explains each."""\n')
        for option in commands[command]["options"]:
            word = keyword(option["names"][-1])
            if word in left_out | {"help", "json"} or groups and option["group"] not in groups:
                continue
            old.update(keyword(each) for each in option["old_names"])
            print(f"    {word}: {BY_NAME.get(word, BY_ARGUMENT.get(option['value'], 'str'))}")
    print("\n\n#: Names of earlier versions, which the program still accepts.\nOLD_NAMES = frozenset({\n"
          + "".join(f'    "{each}",\n' for each in sorted(old)) + "})")


if __name__ == "__main__":
    main()
