"""The names of Java's packages, classes and static methods, each asked for once.

Py4J asks the JVM about every part of a name, every time, and the JVM looks for a class of that name in all jars. That was a fifth of its
CPU time while an incremental query is compiled and run, PySpark's own calls included.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


class KnownNames(JVMView):  # type: ignore[misc]  # Py4J has no types
    """A view of the JVM that remembers the names."""

    def __init__(self, view: JVMView) -> None:
        super().__init__(view._gateway_client, view._jvm_name, id=view._id)
        self._view = view  # the JVM forgets a view that Python no longer holds

    def __getattr__(self, name: str) -> Any:
        return _remember(self, name, super().__getattr__(name))


class _Package(JavaPackage):  # type: ignore[misc]  # Py4J has no types
    def __getattr__(self, name: str) -> Any:
        return _remember(self, name, super().__getattr__(name))


class _Class(JavaClass):  # type: ignore[misc]  # Py4J has no types
    def __getattr__(self, name: str) -> Any:
        return _remember(self, name, super().__getattr__(name))


def with_known_names(view: JVMView) -> KnownNames:
    return view if isinstance(view, KnownNames) else KnownNames(view)


def _remember(owner: Any, name: str, found: Any) -> Any:
    """Keep what a name stands for as an attribute of its owner. Values of static fields change, and a class may come with a later jar: what
    is called like a class and is none yet, Py4J takes for a package.
    """
    if isinstance(found, JavaPackage):
        found = _Package(found._fqn, found._gateway_client, found._jvm_id)
        if name[:1].isupper():
            return found
    elif isinstance(found, JavaClass):
        found = _Class(found._fqn, found._gateway_client)
    elif not isinstance(found, JavaMember):
        return found
    owner.__dict__[name] = found
    return found
