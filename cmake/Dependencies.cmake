# System packages. All that are missing are named at once, with the command that installs them.

set(missing)
find_package(Threads REQUIRED)

# LLVM's package file fails in a confusing way when one of these is missing, so they are looked for first.
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  list(APPEND missing zlib1g-dev)
endif()
find_path(ZSTD_INCLUDE_DIR zstd.h)
if(NOT ZSTD_INCLUDE_DIR)
  list(APPEND missing libzstd-dev)
endif()
find_package(SQLite3 QUIET)
if(NOT SQLite3_FOUND)
  list(APPEND missing libsqlite3-dev)
endif()
find_package(fmt QUIET)
if(NOT fmt_FOUND)
  list(APPEND missing libfmt-dev)
endif()
find_package(nlohmann_json QUIET)
if(NOT nlohmann_json_FOUND)
  list(APPEND missing nlohmann-json3-dev)
endif()
if(TILEWRIGHT_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    list(APPEND missing libgtest-dev)
  endif()
endif()
if(ZLIB_FOUND AND ZSTD_INCLUDE_DIR)
  find_package(LLVM 19.1 QUIET CONFIG PATHS /usr/lib/llvm-19)
  if(NOT LLVM_FOUND AND NOT LLVM_CONSIDERED_CONFIGS)
    list(PREPEND missing llvm-19-dev)
  endif()
elseif(NOT EXISTS /usr/lib/llvm-19/lib/cmake/llvm/LLVMConfig.cmake)
  list(PREPEND missing llvm-19-dev)
endif()
find_package(Python 3.11 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python_Development.Module_FOUND)
  list(APPEND missing python3-dev)
endif()

if(missing)
  tilewright_missing_packages(${missing})
endif()
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "LLVM 19.1 is needed; what was found: ${LLVM_CONSIDERED_CONFIGS}, version "
    "${LLVM_CONSIDERED_VERSIONS} (set LLVM_DIR to the folder of its LLVMConfig.cmake)")
endif()

# Code generation for the processor of this machine and for 64-bit Arm; the components bring in what they need
# themselves.
llvm_map_components_to_libnames(TILEWRIGHT_LLVM_LIBRARIES
  AArch64CodeGen AArch64Desc AArch64Info Analysis AsmParser BitReader BitWriter CodeGen Core ExecutionEngine InstCombine IRReader JITLink MC MCParser
  native Object OrcJIT OrcShared OrcTargetProcess Passes ScalarOpts Support Target TargetParser TransformUtils
  Vectorize)

execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE nanobind_result ERROR_QUIET)
if(nanobind_result)
  message(FATAL_ERROR "nanobind is missing in ${Python_EXECUTABLE}: run scripts/setup, or pip install 'nanobind>=3,<4'")
endif()
find_package(nanobind 3 REQUIRED CONFIG)
