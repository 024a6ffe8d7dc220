# MGPU_STATIC: programs that run where none of our packages are. The C library stays shared: kernels
# are opened with dlopen, and take their math from it.
add_link_options(-static-libstdc++ -static-libgcc)
# g++ 12 finds overlaps in its own std::string at -O3 (its bug 105651).
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)
set(ZLIB_USE_STATIC_LIBS ON)
find_library(SQLite3_LIBRARY NAMES libsqlite3.a REQUIRED)
if(MGPU_COMPILER)
  find_library(MGPU_ZSTD NAMES libzstd.a REQUIRED)
endif()
# Debian has no static fmt; its headers hold all of it.
add_library(fmt::fmt INTERFACE IMPORTED)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
