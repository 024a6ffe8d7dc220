# Finds the headers of the CUDA toolkit; nothing of CUDA is ever linked. Defines
#   MGPU_CUDA_INCLUDE   their folder, or empty: MGPU_CUDA is OFF, or AUTO and they are not there
set(MGPU_CUDA_INCLUDE "")
if(NOT MGPU_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  find_path(MGPU_NVRTC_INCLUDE nvrtc.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
    PATH_SUFFIXES include)
  if(MGPU_NVRTC_INCLUDE)
    set(MGPU_CUDA_INCLUDE "${MGPU_NVRTC_INCLUDE}")
  elseif(MGPU_CUDA STREQUAL "ON")
    message(FATAL_ERROR "MGPU_CUDA=ON, but nvrtc.h was not found: install the CUDA toolkit or set CUDA_HOME")
  endif()
endif()
