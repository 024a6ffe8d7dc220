# What `cmake --install` and CPack take, in two components: `runtime`, which needs no LLVM (libmgt.so,
# its headers, find_package, pkg-config, Python), and `tools`, the programs with the compiler. A build
# without the compiler has its mgpu-tune in `runtime`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config "${CMAKE_INSTALL_LIBDIR}/cmake/mgpu")
set(pc "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(TARGETS mgt EXPORT mgpuTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT runtime
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS mgpu_pjrt LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)
install(FILES pipeline/c/mgt.h pipeline/c/mgt.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT runtime)
install(EXPORT mgpuTargets NAMESPACE mgpu:: DESTINATION "${config}" COMPONENT runtime)
configure_package_config_file(cmake/mgpuConfig.cmake.in "${CMAKE_BINARY_DIR}/mgpuConfig.cmake" INSTALL_DESTINATION "${config}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/mgpuConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH MGPU_PC_PREFIX "/${pc}" "/")
string(REGEX REPLACE "/$" "" MGPU_PC_PREFIX "${MGPU_PC_PREFIX}")
configure_file(cmake/mgpu.pc.in "${CMAKE_BINARY_DIR}/mgpu.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/mgpuConfig.cmake" "${CMAKE_BINARY_DIR}/mgpuConfigVersion.cmake" DESTINATION "${config}" COMPONENT runtime)
install(FILES "${CMAKE_BINARY_DIR}/mgpu.pc" DESTINATION "${pc}" COMPONENT runtime)
# Used where it is (PYTHONPATH), or by `pip install PREFIX/share/mgpu/python`.
install(DIRECTORY pipeline/c/python/ DESTINATION "${CMAKE_INSTALL_DATADIR}/mgpu/python" COMPONENT runtime
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "pyproject.toml" PATTERN "__pycache__" EXCLUDE)

if(MGPU_COMPILER)
  set(components runtime tools)
  install(TARGETS mgpu-tune-compiler RUNTIME DESTINATION lib/mgpu COMPONENT tools)
  install(FILES "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/mgpu-lsp-server" DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
  install(TARGETS mgpu-tune mgpu-opt RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools)
else()
  set(components runtime)
  install(TARGETS mgpu-tune RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
endif()
list(GET components -1 command) # the component that mgpu-tune is in
set(pages "${CMAKE_BINARY_DIR}/pages")
install(FILES "${pages}/mgpu-tune.man" RENAME mgpu-tune.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT ${command})
install(FILES "${pages}/mgpu-tune.bash" RENAME mgpu-tune DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT ${command})
install(FILES "${pages}/mgpu-tune.zsh" RENAME _mgpu-tune DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT ${command})
install(FILES "${pages}/mgpu-tune.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT ${command})
foreach(component ${components})
  install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/mgpu-${component}" RENAME copyright COMPONENT ${component})
  if(component STREQUAL "tools" AND MGPU_JEMALLOC AND EXISTS /usr/share/doc/libjemalloc-dev/copyright)
    install(FILES /usr/share/doc/libjemalloc-dev/copyright DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/mgpu-tools"
      RENAME copyright.jemalloc COMPONENT tools)
  endif()
endforeach()

# All that is installed, for those who build no more than that.
add_custom_target(installed DEPENDS mgt mgpu_pjrt mgpu-tune mgpu_pages)
foreach(target mgpu-opt mgpu-mpi-openmpi mgpu-mpi-mpich)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()

add_custom_target(uninstall
  COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${CMAKE_BINARY_DIR}" -P "${CMAKE_SOURCE_DIR}/cmake/Uninstall.cmake"
  COMMENT "Removing what was installed" VERBATIM)

set(CPACK_PACKAGE_NAME mgpu)
set(CPACK_PACKAGE_VENDOR mgpu)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Builds, plans and replays multi-GPU graphs")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The mgpu developers")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME mgpu-runtime)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME mgpu-tools)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "libmgt.so with its headers and Python package, and libmgpu_pjrt.so: builds, plans and replays graphs; needs no LLVM.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "mgpu-tune, mgpu-opt and mgpu-lsp-server: checks, plans, compiles and tunes programs in MLIR.")
include(CPack)

# For other machines: a wheel that holds everything, Debian packages and a tarball.
if(MGPU_STATIC AND MGPU_COMPILER)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(root "${CMAKE_BINARY_DIR}/packages/root")
  add_custom_target(packages DEPENDS installed VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${CMAKE_BINARY_DIR}/packages"
    COMMAND "${CMAKE_COMMAND}" --install "${CMAKE_BINARY_DIR}" --strip --prefix "${root}"
    COMMAND Python3::Interpreter "${root}/share/mgpu/python/build_wheel_of_mgpu.py" "${CMAKE_BINARY_DIR}/packages"
      "${root}/lib/mgpu/mgpu-tune-compiler"
    COMMAND "${CMAKE_CPACK_COMMAND}" --config "${CMAKE_BINARY_DIR}/CPackConfig.cmake" -B "${CMAKE_BINARY_DIR}/packages")
endif()
