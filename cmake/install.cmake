# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: library, header, CMake package, pkg-config file, program, its data, man page.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clattn)

install(TARGETS clattn EXPORT clattnTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/clattn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT clattnTargets NAMESPACE clattn:: DESTINATION ${package_dir})

configure_package_config_file(cmake/clattnConfig.cmake.in ${PROJECT_BINARY_DIR}/clattnConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/clattnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/clattnConfig.cmake ${PROJECT_BINARY_DIR}/clattnConfigVersion.cmake
    DESTINATION ${package_dir})

# Relative to itself, so that a tree may be moved, into a package among others.
file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")

# A static library hands its own needs on to whoever links it.
set(pc_cflags "")
set(pc_static "")
set(pc_private "")
set(pc_requires "")
if(NOT CLATTN_DYNAMIC_OPENCL)
    set(pc_requires " OpenCL")
endif()
foreach(library IN LISTS CLATTN_MATH CMAKE_THREAD_LIBS_INIT CMAKE_DL_LIBS)
    if(library MATCHES "^-")
        string(APPEND pc_private " ${library}")
    else()
        string(APPEND pc_private " -l${library}")
    endif()
endforeach()
if(NOT BUILD_SHARED_LIBS)
    set(pc_cflags " -DCLATTN_STATIC")
    set(pc_static "${pc_private}")
    set(pc_private "")
endif()
configure_file(cmake/clattn.pc.in ${PROJECT_BINARY_DIR}/clattn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/clattn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `cpack -G DEB` in the build folder.
set(CPACK_PACKAGE_NAME clattn)
set(CPACK_PACKAGE_VENDOR clattn)
set(CPACK_PACKAGE_CONTACT "the clattn authors <clattn@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, ocl-icd-libopencl1 | libopencl1")
if(CLATTN_BUILD_TOOLS)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libcjson1")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd, opencl-headers")
include(CPack)

if(CLATTN_BUILD_TOOLS)
    install(TARGETS clattn_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY tests/data/minilm DESTINATION ${CMAKE_INSTALL_DATADIR}/clattn)
    install(FILES docs/clattn.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
