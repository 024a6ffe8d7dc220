# Run by each build: writes OUTPUT, which says which commit of SOURCE is built, where it changes.
execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown") # a tarball
endif()
set(text "#define MGPU_COMMIT \"${commit}\"\n#define MGPU_CUDA_HEADERS \"${CUDA}\"\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE "${OUTPUT}" "${text}")
endif()
