# Compiler, linker and flags that all of our targets share, through the interface target `tilewright_options`.

if(TILEWRIGHT_CCACHE)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    # Paths relative to the checkout, so that work trees share what they compiled.
    set(settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
    if(TILEWRIGHT_PCH)
      # ccache refuses precompiled headers unless it may trust that their macros and times do not matter.
      set(settings CCACHE_SLOPPINESS=pch_defines,time_macros)
    endif()
    set(launcher ${CMAKE_COMMAND} -E env ${settings} ${CCACHE_PROGRAM})
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  endif()
endif()

set(TILEWRIGHT_USES_MOLD OFF)
if(TILEWRIGHT_MOLD)
  find_program(MOLD_PROGRAM mold)
  if(MOLD_PROGRAM)
    set(TILEWRIGHT_USES_MOLD ON)
    # Code that runs rarely stands apart, as GNU ld puts it: what runs lies on fewer pages.
    add_link_options(-fuse-ld=mold -Wl,-z,keep-text-section-prefix)
  endif()
endif()
add_link_options(-Wl,--gc-sections -Wl,--as-needed)

add_library(tilewright_options INTERFACE)
target_include_directories(tilewright_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(tilewright_options INTERFACE
  -Wall -Wextra -ffunction-sections -fdata-sections
  $<$<BOOL:${TILEWRIGHT_WERROR}>:-Werror>
  # Internal errors and debug information name files as the repository does.
  $<$<CONFIG:Release>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  # g++ 12 leaves some parts of functions that run rarely empty. Linked before another one, an empty part has the same
  # address in .eh_frame_hdr, where the unwinder may find it instead: then an exception ends the process.
  $<$<CONFIG:Release>:-fno-reorder-blocks-and-partition>
  # The library binds its own calls (-Bsymbolic-functions), so the compiler may inline them.
  $<$<CONFIG:Release>:-fno-semantic-interposition>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # From -O2 on, g++ 12 sees overflows in its own std::string (gcc bugs 105329, 105651); at -O1, in the preset dev, these
  # warnings are right and stay on.
  target_compile_options(tilewright_options INTERFACE
    "$<$<CONFIG:Release>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>"
    "$<$<CONFIG:Release>:-Wno-maybe-uninitialized>")
endif()
if(TILEWRIGHT_PCH)
  target_compile_options(tilewright_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
if(TILEWRIGHT_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # A fourth of the time of a batch went into collecting garbage: collection begins at 1 GB, which few batches reach.
  target_compile_options(tilewright_options INTERFACE "SHELL:--param ggc-min-heapsize=1000000")
endif()

if(TILEWRIGHT_SANITIZE)
  # Everything of ours and nanobind's, so that no uninstrumented inline function is chosen by the linker. LLVM's
  # archives are not instrumented; vptr checks need the type information of both sides and would report them.
  add_compile_options(-fsanitize=${TILEWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize=vptr)
  # Checks of each access, which take more than half of the time of compiling: the address sanitizer reports what matters
  # of them. Only the runtime, which is in C, gets memory of users, whose alignment is checked.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,alignment,object-size>)
  add_link_options(-fsanitize=${TILEWRIGHT_SANITIZE})
endif()
