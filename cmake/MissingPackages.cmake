# What to say when a system package is missing; without a compiler CMake could not even look for the others.

function(tilewright_missing_packages)
  list(JOIN ARGV " " packages)
  message(FATAL_ERROR "Tilewright needs system packages that are not installed. On Debian 12, as root or with sudo:\n"
    "    apt-get update && apt-get install -y --no-install-recommends ${packages}\n"
    "then run the same command again.")
endfunction()

find_program(TILEWRIGHT_ANY_COMPILER NAMES $ENV{CXX} ${CMAKE_CXX_COMPILER} c++ g++ clang++)
if(NOT TILEWRIGHT_ANY_COMPILER)
  tilewright_missing_packages(g++ llvm-19-dev libzstd-dev zlib1g-dev libfmt-dev nlohmann-json3-dev libsqlite3-dev
    python3-dev)
endif()
