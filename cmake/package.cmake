# SPDX-License-Identifier: Apache-2.0
# Read by cpack. Debian's folder of libraries depends on the prefix that the build was configured with.
if(CPACK_GENERATOR STREQUAL "DEB" AND NOT CPACK_CLATTN_LIBDIR MATCHES "^lib/.+-")
    message(FATAL_ERROR "A .deb has its libraries in lib/TRIPLET, this build in ${CPACK_CLATTN_LIBDIR}: "
                        "configure with -DCMAKE_INSTALL_PREFIX=/usr, as `cmake --preset deb` does")
endif()
