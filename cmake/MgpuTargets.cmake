# Compiler flags and the two functions every folder's CMakeLists.txt uses:
#   mgpu_add_library(NAME SOURCES ... LINK ...)   a static library of one folder
#   mgpu_add_unit_test(NAME SOURCES ... LINK ...) a gtest program, one ctest entry per test case

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

# Dev: optimised for the oracle's sake, line tables for stack traces, assertions on.
set(CMAKE_CXX_FLAGS_DEV "-O2 -g1")
set(CMAKE_C_FLAGS_DEV "-O2 -g1")

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(MGPU_WERROR)
  add_compile_options(-Werror)
endif()
if(MGPU_SANITIZE)
  # -O1: what -O2 saves in the tests is less than what it costs in compiling.
  add_compile_options(-O1 -fsanitize=${MGPU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MGPU_SANITIZE})
endif()
find_program(MGPU_MOLD mold)
if(MGPU_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

include_directories("${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")

function(mgpu_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

function(mgpu_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  # `if (x) EXPECT_EQ(...)`: the else that g++ finds dangling is inside the macro.
  # In a unity build it takes each test file for a header: -Wsubobject-linkage.
  target_compile_options(${name} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-else;-Wno-subobject-linkage>)
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
endfunction()
