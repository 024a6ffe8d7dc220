# Finds LLVM/MLIR 22 and defines
#   mgpu_mlir               interface target: include paths, and exactly the two shared libraries MLIR and LLVM
#                           (component targets would drag in a second copy of LLVM)
#   mgpu_add_mlir_library   like mgpu_add_library, reusing one precompiled header of MLIR
set(MGPU_LLVM_VERSION 22)
# LLVM's version files accept only an exact major.minor, so the major is checked here.
find_package(MLIR REQUIRED CONFIG
  HINTS /usr/lib/llvm-${MGPU_LLVM_VERSION}/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
if(NOT LLVM_VERSION_MAJOR EQUAL MGPU_LLVM_VERSION)
  message(FATAL_ERROR "found LLVM ${LLVM_VERSION}, need ${MGPU_LLVM_VERSION}: see cmake/packages.txt")
endif()
include(TableGen)
include(AddLLVM)
include(AddMLIR)

set(MGPU_LLVM_BIN "${LLVM_TOOLS_BINARY_DIR}")
add_library(mgpu_mlir INTERFACE)
target_include_directories(mgpu_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_link_directories(mgpu_mlir INTERFACE "${LLVM_LIBRARY_DIR}")
target_link_libraries(mgpu_mlir INTERFACE MLIR LLVM)
separate_arguments(MGPU_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(mgpu_mlir INTERFACE ${MGPU_LLVM_DEFINITIONS})

if(NOT CMAKE_UNITY_BUILD)
  mgpu_add_pch(mgpu_mlir_pch MlirPch.h LINK mgpu_mlir)
endif()

function(mgpu_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} mgpu_mlir)
  # Reading MLIR's headers takes most of the time of one object, so a unity build makes few of them.
  set_target_properties(${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 32)
  if(TARGET mgpu_mlir_pch)
    target_precompile_headers(${name} REUSE_FROM mgpu_mlir_pch)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
