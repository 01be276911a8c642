# SPDX-License-Identifier: Apache-2.0
# How every target of this project is compiled.

# Not plain `m`: in someone else's build that may be the name of a target.
set(CLATTN_MATH "")
if(UNIX AND NOT APPLE)
    set(CLATTN_MATH -lm)
endif()

set(sanitizer_flags "")
if(CLATTN_SANITIZE)
    set(sanitizer_flags -fsanitize=${CLATTN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()

# Fuzzers want to see which branches an input takes, in every file.
if(CLATTN_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "CLATTN_FUZZ needs clang: configure with -DCMAKE_C_COMPILER=clang")
    endif()
    set(sanitizer_flags -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()

# NaN and infinity mean something here: a default, a masked key, a wrong result. Flags of a project around this one, and the
# defaults of Intel's compiler, may let a compiler leave tests for them out, so the targets take that back after those flags.
# src/status.h refuses to be compiled without.
include(CheckCCompilerFlag)
set(strict_math "")
if(MSVC)
    set(strict_math /fp:precise)
elseif(CMAKE_C_COMPILER_ID STREQUAL "IntelLLVM")
    set(strict_math -fp-model=precise)
else()
    foreach(flag -fno-fast-math -fno-finite-math-only -fno-unsafe-math-optimizations -fsigned-zeros)
        string(MAKE_C_IDENTIFIER "CLATTN_HAS${flag}" has)
        check_c_compiler_flag(${flag} ${has})
        if(${has})
            list(APPEND strict_math ${flag})
        endif()
    endforeach()
endif()

# The version of OpenCL that its headers are asked for: that of the library, or a second argument.
function(clattn_compile target)
    set(opencl_version 120)
    if(ARGC GREATER 1)
        set(opencl_version ${ARGV1})
    endif()
    target_compile_definitions(${target} PRIVATE CL_TARGET_OPENCL_VERSION=${opencl_version})
    # Files have static functions of the same names: not for unity builds.
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                                               C_VISIBILITY_PRESET hidden UNITY_BUILD OFF)
    target_compile_options(${target} PRIVATE ${strict_math})
    if(MSVC)
        target_compile_options(${target} PRIVATE /W4)
    else()
        # POSIX 2008 and M_PI, which -std=c11 alone hides.
        target_compile_definitions(${target} PRIVATE _XOPEN_SOURCE=700)
        if(MINGW)
            # C11's printf, which the system's own library lacks.
            target_compile_definitions(${target} PRIVATE __USE_MINGW_ANSI_STDIO=1)
        endif()
        target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes)
        if(CLATTN_WERROR)
            target_compile_options(${target} PRIVATE -Werror)
        endif()
        target_compile_options(${target} PRIVATE ${sanitizer_flags})
    endif()
    # With -ffast-math gcc links a start-up file that turns denormals off.
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        target_link_options(${target} PRIVATE -fno-fast-math)
    endif()
    target_link_options(${target} PRIVATE ${sanitizer_flags})
endfunction()
