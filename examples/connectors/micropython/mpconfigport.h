// How MicroPython is built for connectors: all of the language, and those of its modules that need neither
// files nor devices.

#include <stdint.h>
#include <alloca.h>

#define MICROPY_CONFIG_ROM_LEVEL (MICROPY_CONFIG_ROM_LEVEL_EXTRA_FEATURES)
#define MICROPY_ENABLE_COMPILER (1)
#define MICROPY_ENABLE_GC (1)
#define MICROPY_NLR_SETJMP (1)
#define MICROPY_LONGINT_IMPL (MICROPY_LONGINT_IMPL_MPZ)
#define MICROPY_FLOAT_IMPL (MICROPY_FLOAT_IMPL_DOUBLE)
#define MICROPY_USE_INTERNAL_PRINTF (0)
#define MICROPY_ERROR_REPORTING (MICROPY_ERROR_REPORTING_DETAILED)
#define MICROPY_PY_BUILTINS_STR_UNICODE (1)
#define MICROPY_PY_BUILTINS_STR_UNICODE_CHECK (1)
#define MICROPY_PY_JSON_SEPARATORS (1)
#define MICROPY_PY_RE_MATCH_GROUPS (1)
#define MICROPY_PY_RE_MATCH_SPAN_START_END (1)
#define MICROPY_PY_TIME_TIME_TIME_NS (1)
#define MICROPY_PY_TIME_INCLUDEFILE "modtime.inc"
#define MICROPY_EPOCH_IS_1970 (1)
uint32_t connector_random_seed(void);
#define MICROPY_PY_RANDOM_SEED_INIT_FUNC (connector_random_seed())
#define MICROPY_STACK_CHECK (1)

// A connector is one file and has no other files, no devices and no one to type.
#define MICROPY_HELPER_REPL (0)
#define MICROPY_KBD_EXCEPTION (0)
#define MICROPY_ENABLE_EXTERNAL_IMPORT (0)
#define MICROPY_ENABLE_SCHEDULER (0)
#define MICROPY_PY_BUILTINS_INPUT (0)
#define MICROPY_PY_BUILTINS_HELP (0)
#define MICROPY_PY_BUILTINS_EXECFILE (0)
#define MICROPY_PY_IO_IOBASE (0)
#define MICROPY_PY_SYS_STDFILES (0)
#define MICROPY_PY_SYS_PS1_PS2 (0)
#define MICROPY_PY_SYS_PATH (0)
#define MICROPY_PY_ASYNCIO (0)
#define MICROPY_PY_FRAMEBUF (0)
#define MICROPY_PY_DEFLATE (0)
#define MICROPY_PY_MACHINE (0)
#define MICROPY_PY_MICROPYTHON (0)
#define MICROPY_PY_OS (0)
#define MICROPY_PY_PLATFORM (0)
#define MICROPY_PY_SELECT (0)
#define MICROPY_PY_UCTYPES (0)
#define MICROPY_PY_VFS (0)
#define MICROPY_VFS (0)
#define MICROPY_READER_VFS (0)

typedef intptr_t mp_int_t;
typedef uintptr_t mp_uint_t;
typedef long mp_off_t;

#define MICROPY_HW_BOARD_NAME "connector"
#define MICROPY_HW_MCU_NAME "wasm32"
#define MP_STATE_PORT MP_STATE_VM
