"""Compilation of kernels to machine code: each kernel is compiled once, and entry points are linked and optimised.

Plain numba copies the code of all functions that a function calls into it, optimises the result and generates machine
code, so a kernel below ten others is optimised eleven times. Here a kernel has two forms. For calls from other kernels,
it is an unlinked module (`Part`) with its own code, not optimised. For calls from Python, it is a linked entry point
(`Whole`), which includes each of the parts that it calls, directly or indirectly, once. Both are cached on disk.

The module uses private parts of numba, so it accepts only releases with which it was tested. With any other release
(ImportError), plain numba compiles the kernels, with the same results, in twice the time.
"""

# numba's classes are untyped.
# mypy: disallow-any-unimported=False, disallow-untyped-calls=False, disallow-subclassing-any=False

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as ll  # type: ignore[import-untyped]
import numba
from llvmlite import ir
from numba.core import compiler
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.funcdesc import default_mangler
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

#: Releases of numba with which tests/sim/test_whole.py has passed.
TRIED = ("0.68",)
if numba.__version__.rpartition(".")[0] not in TRIED:
    raise ImportError(f"not tried with numba {numba.__version__}")

_ENVIRONMENT = "_ZN08NumbaEnv"
#: Matches a named tuple of a subclass with the same fields.
_CompileResult: Any = compiler.CompileResult
#: Parts by module and name, by which a part loaded from disk finds the parts that it calls.
_parts: dict[tuple[str, str], PartDispatcher] = {}


def _below(libraries: list[Any]) -> Iterator[Any]:
    """Yield these libraries and all that they call, directly or indirectly, each once."""
    seen: set[Any] = set()
    waiting = list(libraries)
    while waiting:
        library = waiting.pop()
        if library in seen:
            continue
        seen.add(library)
        yield library
        if isinstance(library, Part):
            waiting += library._linking_libraries


class Part(JITCodeLibrary):
    """The code of one kernel, with references to the kernels that it calls. It has no machine code."""

    #: The kernel: module, name, types of its arguments.
    of: tuple[str, str, tuple[Any, ...]]

    def finalize(self) -> None:
        """Finish the library without generating machine code."""
        self._raise_if_finalized()
        foreign = [library for library in self._linking_libraries if not isinstance(library, Part)]
        for library in dict.fromkeys(foreign):  # numba's own helper functions
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._linking_libraries = list(dict.fromkeys(x for x in self._linking_libraries if isinstance(x, Part)))
        self._finalize_dynamic_globals()
        self._finalized = True

    def alone(self) -> Any:
        """Return this kernel's code, to be linked into others.

        It has external linkage: numba would return linkonce_odr functions, which LLVM's linker drops if nothing linked
        earlier refers to them, and the code would call address 0.
        """
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """Return the code together with all kernels that it calls, for a calling function that is no kernel."""
        module = self._final_module.clone()
        for library in _below(self._linking_libraries):
            module.link_in(_code_of(library), preserve=True)
        for function in module.functions:
            if not function.is_declaration and function.linkage == ll.Linkage.external:
                function.linkage = ll.Linkage.linkonce_odr
        return module


def _code_of(library: Any) -> Any:
    return library.alone() if isinstance(library, Part) else library._get_module_for_linking()


class Whole(JITCodeLibrary):
    """An entry point that Python calls, linked with all kernels that it calls."""

    def finalize(self) -> None:
        """Link all kernels that are called into this library and compile it."""
        own = {function.name for function in self._final_module.functions if not function.is_declaration}
        for library in _below(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(_code_of(library), preserve=True)
        self._linking_libraries = []
        # Only functions in this module call the functions below it, so the compiler may change their calling convention
        # or drop them. They get unique names: LLVM's loader finds local functions by name too, and could confuse equal
        # names.
        here = hashlib.blake2b(" ".join(sorted(own)).encode(), digest_size=8).hexdigest()
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in own:
                function.name = f"{function.name}.{here}"
                function.linkage = ll.Linkage.internal
        super().finalize()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT) and (found := lookup_environment(variable.name)) is not None:
                self.codegen.set_env(variable.name, found)

    def _optimize_final_module(self) -> None:
        # One pass is enough: numba runs it twice because of reference counts, which kernels do not have. Vectorisation
        # is off because the kernels' loops are short.
        options = ll.create_pipeline_tuning_options(3)
        options.loop_vectorization = options.slp_vectorization = False
        builder = ll.create_pass_builder(self.codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return the machine code, and the names of the functions in it with empty bodies.

        numba also stores the functions' code, for libraries that link this one. No library links an entry point.
        """
        self._ensure_finalized()
        names = self.codegen._create_empty_module(self.name)
        nothing = ir.FunctionType(ir.VoidType(), [])
        for function in self._final_module.functions:
            if not function.is_declaration:
                body = ir.IRBuilder(ir.Function(names, nothing, function.name).append_basic_block())
                body.ret_void()
        return self.name, "object", (self._get_compiled_object(), ll.parse_assembly(str(names)).as_bitcode())


def _name_in_code(name: str, arguments: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """Return a function's name in the code, made from its arguments' types as text."""
    kinds = hashlib.blake2b(" ".join(map(str, arguments)).encode(), digest_size=8).hexdigest()
    return str(default_mangler(name, (), abi_tags=(*abi_tags, kinds), uid=uid))


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):
    _name = "kernel_part"

    def run_pass(self, state: Any) -> bool:
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.of = (state.func_id.modname, state.func_id.func_qualname, tuple(state.args))
        # The function's name in the code must be the same in all processes, but numba numbers functions and record
        # types per process.
        state.func_id.unique_id = state.func_id.func.__code__.co_firstlineno
        context = state.targetctx
        context.mangler = _name_in_code
        try:
            super().run_pass(state)
        finally:
            del context.mangler
        state.library._ensure_finalized()
        state.cr = state.cr._replace(cfunc=state.library)
        state.targetctx.insert_user_function(state.library, state.cr.fndesc, [state.library])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(NativeLowering):
    _name = "kernel_whole"

    def run_pass(self, state: Any) -> bool:
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


def _pipeline(state: Any, lower: type) -> list[Any]:
    made = compiler.DefaultPassBuilder.define_nopython_pipeline(state)
    made.passes = [(lower, text) if found is NativeLowering else (found, text) for found, text in made.passes]
    made.finalize()
    return [made]


class PartCompiler(compiler.CompilerBase):
    """Compiles a kernel for later linking."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any) -> None:
        flags.no_compile = True
        super().__init__(typing, target, library, args, result, flags, names)

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipeline with the lowering of an unlinked kernel."""
        return _pipeline(self.state, _LowerPart)


class WholeCompiler(compiler.CompilerBase):
    """Compiles a kernel that Python calls."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipeline with the lowering of a linked entry point."""
        return _pipeline(self.state, _LowerWhole)


class _PartOnDisk(CompileResultCacheImpl):
    """A part as a file: its code, and the names of the parts that it calls."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"{super().get_filename_base(fullname, abiflags)}.part"

    def reduce(self, made: Any) -> tuple[Any, ...]:
        made.fndesc.typemap = made.fndesc.calltypes = None
        calls = [library.of for library in made.library._linking_libraries]
        code = made.library._final_module.as_bitcode()
        return made.library.of, code, calls, made.fndesc, made.environment, made.signature, made.reload_init

    def rebuild(self, target_context: Any, kept: tuple[Any, ...]) -> Any:
        of, code, calls, fndesc, environment, signature, reload_init = kept
        for again in reload_init:
            again()
        library = Part(target_context.codegen(), of[1])
        library.of = of
        library._final_module = ll.parse_bitcode(code)
        library._linking_libraries = [_part_of(*called) for called in calls]
        library._finalized = True
        return _CompileResult(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environment,
            entry_point=library,
            fndesc=fndesc,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=reload_init,
            referenced_envs=[environment],
        )


def _part_of(module: str, name: str, args: tuple[Any, ...]) -> Part:
    importlib.import_module(module)
    part = _parts[module, name]
    part.compile(args)
    made: Any = part.overloads[args]
    found: Part = made.library
    return found


class _PartCache(FunctionCache):
    _impl_class = _PartOnDisk


class PartDispatcher(CPUDispatcher):
    """Compiles the part of a kernel; Python cannot call it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options, pipeline_class=PartCompiler)
        self._cache = _PartCache(function)
        _parts[function.__module__, function.__qualname__] = self

    def add_overload(self, made: Any) -> None:
        """Register a compiled signature."""
        self.overloads[tuple(made.signature.args)] = made
