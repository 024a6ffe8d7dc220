# Finds LLVM/MLIR 22 and defines
#   mgpu_mlir               interface target: include paths, and MLIR's and LLVM's static libraries. A program
#                           that relocates libLLVM.so and libMLIR.so at each start takes twice the time to
#                           check a small program
#   mgpu_lld                lld's ELF linker as a library
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
file(GLOB MGPU_LLVM_ARCHIVES "${LLVM_LIBRARY_DIR}/libMLIR*.a" "${LLVM_LIBRARY_DIR}/libLLVM*.a")
list(FILTER MGPU_LLVM_ARCHIVES EXCLUDE REGEX Test)
if(NOT MGPU_LLVM_ARCHIVES)
  message(FATAL_ERROR "no static libraries of LLVM are in ${LLVM_LIBRARY_DIR}: see cmake/packages.txt")
endif()
find_library(MGPU_ZSTD zstd REQUIRED)
# The linker takes of them what is used.
target_link_options(mgpu_mlir INTERFACE -Wl,--gc-sections)
target_link_libraries(mgpu_mlir INTERFACE -Wl,--start-group ${MGPU_LLVM_ARCHIVES} -Wl,--end-group "${MGPU_ZSTD}" ZLIB::ZLIB ${CMAKE_DL_LIBS} Threads::Threads)
separate_arguments(MGPU_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(mgpu_mlir INTERFACE ${MGPU_LLVM_DEFINITIONS})

# lld as a library, which links the host's kernels. It would bring every processor's backend and Polly, for
# link-time optimisation, which is never asked for: empty functions stand in for them.
set(stubs "void _Z18getPollyPluginInfov(void) { __builtin_trap(); }\n")
foreach(processor ${LLVM_TARGETS_TO_BUILD})
  if(NOT processor STREQUAL LLVM_NATIVE_ARCH)
    foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
      string(APPEND stubs "void LLVMInitialize${processor}${part}(void) {}\n")
    endforeach()
  endif()
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/OtherBackends.c" CONTENT "${stubs}" @ONLY)
add_library(mgpu_lld STATIC "${CMAKE_BINARY_DIR}/OtherBackends.c")
foreach(part lldELF lldCommon)
  find_library(MGPU_${part} ${part} HINTS "${LLVM_LIBRARY_DIR}" NO_DEFAULT_PATH)
  if(NOT MGPU_${part})
    message(FATAL_ERROR "lib${part}.a of LLVM ${MGPU_LLVM_VERSION} was not found: see cmake/packages.txt (liblld-22-dev)")
  endif()
  target_link_libraries(mgpu_lld INTERFACE "${MGPU_${part}}")
endforeach()
target_link_libraries(mgpu_lld INTERFACE mgpu_mlir)

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
