# Finds the headers of the CUDA toolkit; nothing of CUDA is ever linked. Defines
#   MGPU_CUDA_INCLUDE   their folder, or empty: MGPU_CUDA is OFF, or AUTO and they are not there
#   MGPU_CUDA_VERSION   "13.0", or empty where cuda.h is not there
#   MGPU_CUDA_DRIVER    whether they have all that device/cuda needs: cuda.h of 12.9 or later
set(MGPU_CUDA_INCLUDE "")
set(MGPU_CUDA_VERSION "")
set(MGPU_CUDA_DRIVER OFF)
if(NOT MGPU_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  find_path(MGPU_NVRTC_INCLUDE nvrtc.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
    PATH_SUFFIXES include)
  if(MGPU_NVRTC_INCLUDE)
    set(MGPU_CUDA_INCLUDE "${MGPU_NVRTC_INCLUDE}")
    if(EXISTS "${MGPU_CUDA_INCLUDE}/cudaTypedefs.h")
      file(STRINGS "${MGPU_CUDA_INCLUDE}/cudaTypedefs.h" newest REGEX "PFN_cuLogsRegisterCallback_v12090" LIMIT_COUNT 1)
      if(newest)
        set(MGPU_CUDA_DRIVER ON)
      endif()
    endif()
  endif()
  if(MGPU_CUDA_INCLUDE AND EXISTS "${MGPU_CUDA_INCLUDE}/cuda.h")
    file(STRINGS "${MGPU_CUDA_INCLUDE}/cuda.h" newest REGEX "^#define CUDA_VERSION [0-9]+" LIMIT_COUNT 1)
    if(newest MATCHES "([0-9]+)0([0-9])0$")
      set(MGPU_CUDA_VERSION "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
    endif()
  endif()
  if(MGPU_CUDA STREQUAL "ON" AND NOT MGPU_CUDA_DRIVER)
    message(FATAL_ERROR "MGPU_CUDA=ON, but nvrtc.h and a cuda.h of CUDA 12.9 or later were not found: install the CUDA toolkit or set CUDA_HOME")
  endif()
endif()
