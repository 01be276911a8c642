# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: library, header, CMake package, pkg-config file, program, its data, man page.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clattn)

# Components: runtime (the shared library alone), dev, tools.
install(TARGETS clattn EXPORT clattnTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(DIRECTORY include/clattn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(EXPORT clattnTargets NAMESPACE clattn:: DESTINATION ${package_dir} COMPONENT dev)

configure_package_config_file(cmake/clattnConfig.cmake.in ${PROJECT_BINARY_DIR}/clattnConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/clattnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/clattnConfig.cmake ${PROJECT_BINARY_DIR}/clattnConfigVersion.cmake
    DESTINATION ${package_dir} COMPONENT dev)

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
install(FILES ${PROJECT_BINARY_DIR}/clattn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

if(CLATTN_BUILD_TOOLS)
    install(TARGETS clattn_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
    install(DIRECTORY tests/data/minilm DESTINATION ${CMAKE_INSTALL_DATADIR}/clattn COMPONENT tools)
    install(FILES docs/clattn.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
endif()

# ------------------------------------------------------------------------------------------------------- packages
# `cpack -G DEB` in a build folder of `cmake --preset deb`: a package a component.

set(package_of_dev libclattn-dev)
set(package_of_tools clattn-tools)
set(components dev)
if(BUILD_SHARED_LIBS)
    set(package_of_runtime libclattn${CLATTN_SOVERSION})
    list(APPEND components runtime)
endif()
if(CLATTN_BUILD_TOOLS)
    list(APPEND components tools)
endif()
foreach(component IN LISTS components)
    string(TOUPPER ${component} COMPONENT)
    set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${package_of_${component}})
    install(FILES LICENSE cmake/copyright DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package_of_${component}}
        COMPONENT ${component})
endforeach()

set(CPACK_PACKAGE_NAME clattn)
set(CPACK_PACKAGE_VENDOR clattn)
set(CPACK_PACKAGE_CONTACT "the clattn authors <clattn@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package.cmake)
set(CPACK_CLATTN_LIBDIR ${CMAKE_INSTALL_LIBDIR})

# Which versions of libc6 and the like a file needs, dpkg-shlibdeps reads from the file.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
if(CLATTN_DYNAMIC_OPENCL)
    set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "opencl-c-headers | opencl-headers")
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "ocl-icd-libopencl1 | libopencl1, pocl-opencl-icd | opencl-icd")
else()
    set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "ocl-icd-opencl-dev | opencl-dev, opencl-c-headers | opencl-headers")
endif()
if(BUILD_SHARED_LIBS)
    string(PREPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${package_of_runtime} (= ${PROJECT_VERSION}), ")
    set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${package_of_runtime} (= ${PROJECT_VERSION})")
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
endif()
include(CPack)
