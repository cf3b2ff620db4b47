"""Whether a Python program kept the interface it was given: its classes, methods and functions, read without running.

Programs that are trained for speed strip class wrappers, method dispatch and unused interfaces. What is found here
fills `ProblemMeasurements.interface`; whether it counts is the criterion's choice.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping

Interface = Mapping[str, tuple[int, ...] | None]


def interface(source: str) -> Interface | None:
    """Each class, method and function by its dotted name, with the numbers of its parameters (None for a class).

    The numbers are of positional, of optional and of keyword-only parameters, then whether it takes any more of either
    kind. Definitions inside functions are no interface. None when the source cannot be read as Python.
    """
    try:
        return dict(_definitions(ast.parse(source).body, ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def kept(source: str, given: str) -> int:
    """1 when `source` defines all that `given` defines, taking the same numbers of parameters; 0 when not.

    -1 when one of the two cannot be read: it was not checked.
    """
    given_interface = interface(given)
    return -1 if given_interface is None else kept_of(source, given_interface)


def kept_of(source: str, given_interface: Interface) -> int:
    """1 when `source` defines all of a given interface, 0 when not, -1 when it cannot be read."""
    mine = interface(source)
    if mine is None:
        return -1
    return int(all(name in mine and mine[name] == parameters for name, parameters in given_interface.items()))


def shared(sources: Iterable[str]) -> Interface | None:
    """What all sources define alike, those excluded that cannot be read; None when none can.

    Where a problem states no interface, this is the one that its references show: nobody invents the same class,
    methods and parameters by chance as often as a statement requires them.
    """
    read = [parsed for parsed in map(interface, sources) if parsed is not None]
    if not read:
        return None
    first, *rest = read
    missing = object()
    return {
        name: parameters
        for name, parameters in first.items()
        if all(definitions.get(name, missing) == parameters for definitions in rest)
    }


def _definitions(body: list[ast.stmt], above: str) -> Iterator[tuple[str, tuple[int, ...] | None]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield above + node.name, None
            yield from _definitions(node.body, f"{above}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield above + node.name, _parameters(node.args)


def _parameters(taken: ast.arguments) -> tuple[int, ...]:
    positional = len(taken.posonlyargs) + len(taken.args)
    more = (taken.vararg is not None, taken.kwarg is not None)
    return positional, len(taken.defaults), len(taken.kwonlyargs), *map(int, more)
