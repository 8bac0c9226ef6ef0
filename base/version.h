/* The version of the program, as it stands in files that it writes. meson.build says the same. */
#ifndef WEFT_BASE_VERSION_H
#define WEFT_BASE_VERSION_H

#define WEFT_VERSION "0.1.0"

#endif
