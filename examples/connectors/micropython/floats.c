// Text of floats by the C library, in place of MicroPython's own, which loses the last digit: 0.92 became
// 0.9200000000000002. floats.patch does the same for reading.

#include <stdio.h>
#include <stdlib.h>

#include "py/formatfloat.h"
#include "py/mpconfig.h"

// What MicroPython asks for where a float is printed as it is.
#define SHORTEST 16

int mp_format_float(mp_float_t value, char *to, size_t room, char kind, int precision, char sign) {
    char format[] = {'%', sign == 0 ? '-' : sign, '.', '*', kind, 0};
    if (precision < 0) precision = 6;
    int length = snprintf(to, room, format, precision, value);
    if ((kind == 'g' || kind == 'G') && precision == SHORTEST) {
        // The shortest text that is read as this number again.
        for (int digits = 15; digits <= 17; digits++) {
            length = snprintf(to, room, format, digits, value);
            if (strtod(to, NULL) == value) break;
        }
    }
    if (length < (int)room) return length;
    // A large number with all its digits does not fit: with an exponent, it does.
    format[4] = kind == 'F' ? 'E' : 'e';
    return snprintf(to, room, format, (int)room - 10 < precision ? (int)room - 10 : precision, value);
}
