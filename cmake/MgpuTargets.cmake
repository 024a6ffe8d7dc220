# Compiler flags and the two functions every folder's CMakeLists.txt uses:
#   mgpu_add_library(NAME SOURCES ... LINK ...)   a static library of one folder
#   mgpu_add_unit_test(NAME SOURCES ... LINK ...) a gtest program, one ctest entry per test case
# and one for the precompiled headers of this folder:
#   mgpu_add_pch(NAME HEADER LINK ...)            a target to reuse it from

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

# Dev: optimised for the oracle's sake, line tables for stack traces, assertions on.
set(CMAKE_CXX_FLAGS_DEV "-O2 -g1")
set(CMAKE_C_FLAGS_DEV "-O2 -g1")

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
# Assertions name files as the tree does, so that programs are the same wherever it lies.
add_compile_options("-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=")
if(MGPU_WERROR)
  add_compile_options(-Werror)
endif()
if(MGPU_SANITIZE)
  # -O0: optimising instrumented code takes longer than the tests it would make faster, but for the
  # planner's searches (planner/CMakeLists.txt).
  add_compile_options(-O0 -fsanitize=${MGPU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MGPU_SANITIZE})
endif()
find_program(MGPU_MOLD mold)
if(MGPU_MOLD)
  add_link_options(-fuse-ld=mold)
  if(MGPU_STATIC) # a tenth less to carry
    add_link_options(-Wl,--icf=all)
  endif()
endif()

include_directories("${CMAKE_SOURCE_DIR}" "${CMAKE_BINARY_DIR}")

function(mgpu_add_pch name header)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} OBJECT "${CMAKE_SOURCE_DIR}/cmake/Pch.cpp")
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/${header}")
  # Without its time of making in it ccache knows it again, with sloppiness = pch_defines,time_macros.
  target_compile_options(${name} PRIVATE "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# A unity build reads a header once for eight files, and without precompiled headers ccache knows its objects
# in any folder.
if(CMAKE_UNITY_BUILD)
  set(MGPU_PCH OFF)
endif()
if(MGPU_PCH)
  mgpu_add_pch(mgpu_runtime_pch RuntimePch.h LINK fmt::fmt nlohmann_json::nlohmann_json tl::expected)
endif()
if(MGPU_PCH AND MGPU_TESTS)
  # Programs are compiled with -fPIE, libraries with -fPIC, and neither takes the other's.
  mgpu_add_pch(mgpu_test_pch TestPch.h LINK fmt::fmt nlohmann_json::nlohmann_json tl::expected GTest::gtest)
  set_target_properties(mgpu_test_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(mgpu_test_pch PRIVATE -fPIE)
endif()

function(mgpu_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(MGPU_PCH)
    target_precompile_headers(${name} REUSE_FROM mgpu_runtime_pch)
  endif()
endfunction()

function(mgpu_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main)
  if(MGPU_PCH)
    target_precompile_headers(${name} REUSE_FROM mgpu_test_pch)
  endif()
  # `if (x) EXPECT_EQ(...)`: the else that g++ finds dangling is inside the macro.
  # In a unity build it takes each test file for a header: -Wsubobject-linkage.
  target_compile_options(${name} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-else;-Wno-subobject-linkage>)
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." PROPERTIES LABELS unit DISCOVERY_TIMEOUT 60)
endfunction()
