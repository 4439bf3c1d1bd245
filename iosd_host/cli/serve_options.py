# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of `osd target serve` that are keys of the configuration, made of the keys' rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from iosd_host.config.schema import (
    Choice,
    Count,
    Duration,
    Key,
    Size,
    file,
    flag,
    networks,
    path,
    show_size,
)
from iosd_host.config.target_keys import OPTIONS
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.frame.params import DurationParam, SizeParam

__all__ = ["given", "key_options"]

MICROSECONDS = 1_000_000
FILE = click.Path(exists=True, dir_okay=False)


class FileValue(ParamType[str]):
    """The value of the key as in a file."""

    name = "TEXT"

    def __init__(self, key: Key) -> None:
        self.key = key

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, if it is a value of the key."""
        try:
            self.key.convert(value)
        except ValueError as error:
            self.fail(f"'{value}' is not {error}", param, ctx)
        return str(value)


def type_of(key: Key) -> Any:
    """How click reads the value; None: there is none."""
    kind = key.convert
    if isinstance(kind, Choice):
        return click.Choice(kind.words)
    if isinstance(kind, Count):
        return click.IntRange(kind.least, kind.most)
    if isinstance(kind, Size):
        return SizeParam(show_size(kind.least), show_size(kind.most))
    if isinstance(kind, Duration):
        return DurationParam(kind.least_s, kind.most_s)
    if kind is path:
        return click.Path(readable=False)
    if kind is file:
        return FILE
    return None if kind is flag else FileValue(key)


def help_of(key: Key) -> str:
    """The help text with the default."""
    words = key.help or f"{key.meaning[0].upper()}{key.meaning[1:]}."
    default = key.unset
    if not default and key.default is not None and key.default is not False:
        default = str(key.show(key.default))
    return f"{words}  [default: {default}]" if default else words


def option(parameter: str, key: Key) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """The option of a key.  It has no default of its own: config.load() has them."""
    kind = key.convert
    more: dict[str, Any] = {"is_flag": True} if kind is flag else {"type": type_of(key)}
    more |= {"multiple": True} if kind is networks else {}
    metavar = key.metavar or ("N" if isinstance(kind, Count) else "")
    more |= {"metavar": metavar} if metavar else {}
    words = (f"--{parameter.replace('_', '-')}", parameter)
    return click.option(*words, envvar=key.envvar, help=help_of(key), **more)


def key_options(command: click.decorators.FC) -> click.decorators.FC:
    """Give a command the option of every key of [target] and [heads]."""
    for parameter, (_, key) in reversed(OPTIONS.items()):
        command = option(parameter, key)(command)
    return command


def written(key: Key, value: Any) -> Any:
    """The values that click has read, as in a file."""
    if isinstance(key.convert, Duration):
        return key.show(round(value * MICROSECONDS))
    return [*value] if isinstance(value, tuple) else key.show(value)


def given(ctx: click.Context) -> dict[str, Any]:
    """The values of the command line and the environment, for config.load()."""
    said = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return {
        parameter: written(key, ctx.params[parameter])
        for parameter, (_, key) in OPTIONS.items()
        if ctx.get_parameter_source(parameter) in said
    }
