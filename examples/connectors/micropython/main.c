// MicroPython as a connector: runs the script that is embedded in the module, once, for one op.
//
// The script gets the module `aileron_host`: the op's input, its output, and the functions of the host.
// What it prints goes to standard error, which the host shows when the script fails.

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "py/builtin.h"
#include "py/compile.h"
#include "py/gc.h"
#include "py/mperrno.h"
#include "py/runtime.h"
#include "py/stackctrl.h"

#define HOST(name) __attribute__((import_module("aileron_host"), import_name(name)))
HOST("http_request") int host_http_request(const char *envelope, size_t length);
HOST("http_response_size") int host_http_response_size(void);
HOST("http_response_status") int host_http_response_status(void);
HOST("http_response_read") int host_http_response_read(char *to, size_t length);

// Where `embed` of a connector's build.py writes the script, in place of the zeros. Volatile, or the compiler
// would compute with them.
#define MARK "aileron-connector-script:"
#define SCRIPT_BYTES (128 * 1024)
const volatile struct {
    char mark[sizeof MARK - 1];
    char text[SCRIPT_BYTES];
} script = {MARK, "#"};

// Calls nest so deep and no deeper: the host's limit of the call stack would end the script without a word.
#define STACK_BYTES (40 * 1024)

static void write_all(int file, const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(file, text, length);
        if (written <= 0) return;
        text += written;
        length -= (size_t)written;
    }
}

// read() -> bytes: the op and its arguments.
static mp_obj_t connector_read(void) {
    vstr_t all;
    vstr_init(&all, 4096);
    for (;;) {
        char *to = vstr_add_len(&all, 16 * 1024);
        ssize_t got = read(STDIN_FILENO, to, 16 * 1024);
        vstr_cut_tail_bytes(&all, 16 * 1024 - (got > 0 ? (size_t)got : 0));
        if (got <= 0) return mp_obj_new_bytes_from_vstr(&all);
    }
}
static MP_DEFINE_CONST_FUN_OBJ_0(connector_read_obj, connector_read);

// write(text): the output, or the error.
static mp_obj_t connector_write(mp_obj_t text) {
    mp_buffer_info_t given;
    mp_get_buffer_raise(text, &given, MP_BUFFER_READ);
    write_all(STDOUT_FILENO, given.buf, given.len);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(connector_write_obj, connector_write);

// http_request(envelope) -> (status, body), or None where the host refused or failed it, and knows why.
static mp_obj_t connector_http_request(mp_obj_t envelope) {
    mp_buffer_info_t given;
    mp_get_buffer_raise(envelope, &given, MP_BUFFER_READ);
    if (host_http_request(given.buf, given.len) != 0) return mp_const_none;
    int size = host_http_response_size();
    if (size < 0) return mp_const_none;
    vstr_t body;
    vstr_init_len(&body, (size_t)size);
    if (size > 0 && host_http_response_read(body.buf, (size_t)size) != size) return mp_const_none;
    mp_obj_t both[] = {MP_OBJ_NEW_SMALL_INT(host_http_response_status()), mp_obj_new_bytes_from_vstr(&body)};
    return mp_obj_new_tuple(2, both);
}
static MP_DEFINE_CONST_FUN_OBJ_1(connector_http_request_obj, connector_http_request);

static const mp_rom_map_elem_t connector_names[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_aileron_host)},
    {MP_ROM_QSTR(MP_QSTR_read), MP_ROM_PTR(&connector_read_obj)},
    {MP_ROM_QSTR(MP_QSTR_write), MP_ROM_PTR(&connector_write_obj)},
    {MP_ROM_QSTR(MP_QSTR_http_request), MP_ROM_PTR(&connector_http_request_obj)},
};
static MP_DEFINE_CONST_DICT(connector_globals, connector_names);
const mp_obj_module_t connector_module = {
    .base = {&mp_type_module},
    .globals = (mp_obj_dict_t *)&connector_globals,
};
MP_REGISTER_MODULE(MP_QSTR_aileron_host, connector_module);

static int run(void) {
    nlr_buf_t nlr;
    if (nlr_push(&nlr) == 0) {
        const char *text = (const char *)script.text;
        mp_lexer_t *lexer = mp_lexer_new_from_str_len(qstr_from_str("connector.py"), text, strlen(text), 0);
        qstr source = lexer->source_name;
        mp_parse_tree_t tree = mp_parse(lexer, MP_PARSE_FILE_INPUT);
        mp_call_function_0(mp_compile(&tree, source, false));
        nlr_pop();
        return 0;
    }
    mp_obj_base_t *raised = nlr.ret_val;
    if (mp_obj_is_subclass_fast(MP_OBJ_FROM_PTR(raised->type), MP_OBJ_FROM_PTR(&mp_type_SystemExit))) {
        mp_obj_t code = mp_obj_exception_get_value(MP_OBJ_FROM_PTR(raised));
        mp_int_t number = 1;
        if (code == mp_const_none) return 0;
        return mp_obj_get_int_maybe(code, &number) ? (int)number : 1;
    }
    mp_obj_print_exception(&mp_plat_print, MP_OBJ_FROM_PTR(raised));
    if (mp_obj_is_subclass_fast(MP_OBJ_FROM_PTR(raised->type), MP_OBJ_FROM_PTR(&mp_type_MemoryError))) {
        mp_printf(&mp_plat_print, "out of memory\n"); // the words that the host knows
        return 2;
    }
    return 1;
}

int main(void) {
    int at;
    mp_stack_set_top(&at);
    mp_stack_set_limit(STACK_BYTES);
    // All the memory that the call may have, but for a little that the C library may want.
    size_t bytes = 1024 * 1024 * 1024;
    char *heap;
    while ((heap = malloc(bytes)) == NULL) bytes -= bytes / 16;
    gc_init(heap, heap + bytes - 64 * 1024);
    mp_init();
    return run();
}

// Nothing is collected: values live in WebAssembly's locals too, where no collector can look for them. A call is
// short, and its memory goes with it.
void gc_collect(void) {}

void mp_hal_stdout_tx_strn_cooked(const char *text, size_t length) { write_all(STDERR_FILENO, text, length); }
mp_uint_t mp_hal_stdout_tx_strn(const char *text, size_t length) {
    write_all(STDERR_FILENO, text, length);
    return length;
}

uint32_t connector_random_seed(void) {
    uint32_t seed = 0;
    getentropy(&seed, sizeof seed);
    return seed;
}

mp_import_stat_t mp_import_stat(const char *path) {
    (void)path;
    return MP_IMPORT_STAT_NO_EXIST;
}

mp_lexer_t *mp_lexer_new_from_file(qstr name) {
    (void)name;
    mp_raise_OSError(MP_ENOENT);
}

// open(...): there are no files.
static mp_obj_t no_files(size_t count, const mp_obj_t *args, mp_map_t *named) {
    (void)count, (void)args, (void)named;
    mp_raise_OSError(MP_ENOENT);
}
MP_DEFINE_CONST_FUN_OBJ_KW(mp_builtin_open_obj, 0, no_files);

void nlr_jump_fail(void *value) {
    (void)value;
    abort();
}
