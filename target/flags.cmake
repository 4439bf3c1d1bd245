# SPDX-License-Identifier: GPL-2.0-or-later
# flags.cmake -- compiler settings shared by the three C trees (target, sandbox, pyosd/_core).
#   -DIOSD_SANITIZE=address,undefined | thread    instrument everything built
#   -DIOSD_FUZZ=ON                                build the libFuzzer targets (clang only)
#   -DIOSD_FUZZ_LEVEL=0                           ... in a third of the time; they run at two thirds of the speed
#   -DIOSD_UNIT_TESTS=ON                          build the unit tests of target/ without sanitizers, too
#   -DIOSD_WERROR=OFF                             warnings are no errors, for compilers we have not tried
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

set(IOSD_SANITIZE "" CACHE STRING "sanitizers to build with, comma separated")
option(IOSD_FUZZ "build the fuzz targets" OFF)
set(IOSD_FUZZ_LEVEL 1 CACHE STRING "optimization level of the fuzz targets")
option(IOSD_UNIT_TESTS "build the unit tests of target/ without sanitizers" OFF)
option(IOSD_WERROR "warnings are errors" ON)

add_compile_definitions(_GNU_SOURCE)
if(IOSD_WERROR)
  set(werror -Werror)
endif()
add_compile_options(-Wall -Wextra ${werror} -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes
                    -Wwrite-strings -fno-omit-frame-pointer -fstack-protector-strong)
if(IOSD_SANITIZE)
  # -g1: lines are all that reports show, and the rest takes up to a quarter of the compiler's time
  add_compile_options(-fsanitize=${IOSD_SANITIZE} -fno-sanitize-recover=all -O1 -g1 -UNDEBUG)
  add_link_options(-fsanitize=${IOSD_SANITIZE} -fuse-ld=gold)  # a third of the time for 90 programs
endif()
if(IOSD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -O${IOSD_FUZZ_LEVEL} -g1 -UNDEBUG)
  add_link_options(-fsanitize=address,undefined)
endif()
