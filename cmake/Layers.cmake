# Layers of src/ that make up libtilewright.so, lowest first. tools/check_layers.py checks who may include whom.
set(TILEWRIGHT_LIBRARY_LAYERS support target ir script arith analysis sparse interpreter schedule lower runtime codegen search)
# Those of which less than a twentieth of the library's running time is spent in their own code (docs/decisions/0090): a
# search runs ir, arith, analysis and schedule, a compilation LLVM, a script the parser in Python.
set(TILEWRIGHT_COLD_LAYERS script sparse lower codegen search)

# A target cannot be without sources: a layer whose folder has none gets one generated file.
function(tilewright_or_placeholder variable kind)
  if(${variable})
    return()
  endif()
  if(kind STREQUAL C)
    set(file ${PROJECT_BINARY_DIR}/placeholder/empty.c)
    file(CONFIGURE OUTPUT ${file} CONTENT "typedef int tw_placeholder;\n")
  elseif(kind STREQUAL MODULE)
    set(file ${PROJECT_BINARY_DIR}/placeholder/module.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "#include <nanobind/nanobind.h>\nNB_MODULE(_core, m) { (void)m; }\n")
  else()
    set(file ${PROJECT_BINARY_DIR}/placeholder/empty.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "\n")
  endif()
  set(${variable} ${file} PARENT_SCOPE)
endfunction()

set(TILEWRIGHT_PCH_HEADERS <algorithm> <array> <atomic> <cstdint> <functional> <map> <memory> <mutex> <optional>
  <span> <sstream> <string> <string_view> <tuple> <unordered_map> <unordered_set> <utility> <variant> <vector>
  <fmt/format.h>)
set(TILEWRIGHT_LLVM_PCH_HEADERS <llvm/IR/IRBuilder.h> <llvm/IR/Module.h>)

# With TILEWRIGHT_UNITY, the compiler takes several files of a target at once: what headers instantiate is then compiled
# once for all of them, which halves the time of a whole build. 24 files of search take half of the time of 3 batches of 8; the compiler then
# needs up to 2 GB. Editing one file compiles all of its batch, so the preset for daily work compiles each file alone.
# Names in anonymous namespaces have to differ within a layer.
function(tilewright_compile_in_batches target)
  if(TILEWRIGHT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
    # GCC warns of types in anonymous namespaces as parts of others outside of the main file, which a batch is.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Sources whose own code takes little of any running time: at -O1 they compile in two thirds to nine tenths of the time.
function(tilewright_optimize_less target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()

function(tilewright_add_layer layer)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test(_main)?\\.cc$")
  tilewright_or_placeholder(sources CXX)
  add_library(layer_${layer} OBJECT ${sources})
  target_link_libraries(layer_${layer} PRIVATE tilewright_options fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  if(layer STREQUAL codegen)
    target_include_directories(layer_${layer} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
    target_compile_definitions(layer_codegen PRIVATE TILEWRIGHT_VERSION="${PROJECT_VERSION}")
    separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
    target_compile_options(layer_${layer} PRIVATE ${definitions})
  elseif(layer STREQUAL search)
    target_link_libraries(layer_${layer} PRIVATE SQLite::SQLite3)
  endif()
  if(layer IN_LIST TILEWRIGHT_COLD_LAYERS)
    tilewright_optimize_less(layer_${layer})
  endif()
  tilewright_compile_in_batches(layer_${layer})
  if(TILEWRIGHT_PCH)
    if(layer STREQUAL codegen)
      target_precompile_headers(layer_${layer} PRIVATE ${TILEWRIGHT_PCH_HEADERS} ${TILEWRIGHT_LLVM_PCH_HEADERS})
    elseif(layer STREQUAL support)
      target_precompile_headers(layer_${layer} PRIVATE ${TILEWRIGHT_PCH_HEADERS})
    else()
      target_precompile_headers(layer_${layer} REUSE_FROM layer_support)
    endif()
  endif()
endfunction()

# Flags and precompiled header of the unit tests. Compiling them takes longer than running them, so release builds
# leave them unoptimized.
function(tilewright_add_test_headers)
  add_library(tilewright_test_options INTERFACE)
  target_link_libraries(tilewright_test_options INTERFACE
    tilewright tilewright_options nlohmann_json::nlohmann_json GTest::gtest)
  target_compile_options(tilewright_test_options INTERFACE $<$<CONFIG:Release>:-O0>)
  if(TILEWRIGHT_PCH)
    set(nothing)
    tilewright_or_placeholder(nothing CXX)
    add_library(tilewright_test_headers OBJECT ${nothing})
    target_link_libraries(tilewright_test_headers PRIVATE tilewright_test_options)
    # A precompiled header serves only where it was compiled alike, and the tests are executables.
    target_compile_options(tilewright_test_headers PRIVATE -fPIE)
    target_precompile_headers(tilewright_test_headers PRIVATE ${TILEWRIGHT_PCH_HEADERS} <gtest/gtest.h>)
  endif()
endfunction()

# tilewright_LAYER_test: all *_test.cc of a layer in one binary, linked against the library. Beside it, each
# NAME_test_main.cc gives a program tilewright_NAME that the tests start as a process of its own.
function(tilewright_add_layer_test layer)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(tilewright_${layer}_test ${sources})
  target_link_libraries(tilewright_${layer}_test PRIVATE tilewright_test_options GTest::gtest_main)
  if(layer STREQUAL search)
    add_dependencies(tilewright_search_test tilewright_helper)
  endif()
  file(GLOB_RECURSE programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*_test_main.cc)
  foreach(program IN LISTS programs)
    cmake_path(GET program STEM name)
    string(REGEX REPLACE "_test_main$" "" name ${name})
    add_executable(tilewright_${name} ${program})
    target_link_libraries(tilewright_${name} PRIVATE tilewright tilewright_options)
    add_dependencies(tilewright_${layer}_test tilewright_${name})
  endforeach()
  add_test(NAME ${layer} COMMAND tilewright_${layer}_test --gtest_brief=1 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${layer} PROPERTIES TIMEOUT 300)
  if(TILEWRIGHT_PCH)
    target_precompile_headers(tilewright_${layer}_test REUSE_FROM tilewright_test_headers)
  endif()
endfunction()
