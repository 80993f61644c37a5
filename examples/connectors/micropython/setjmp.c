// setjmp for WebAssembly's exceptions, as LLVM lowers it (its option -wasm-enable-sjlj). MicroPython raises
// with longjmp, and the C library that comes with the compiler leaves these three functions out.

#include <stddef.h>
#include <stdint.h>

struct jump {
    void *invocation;
    uint32_t label;
    struct {
        void *env;
        int value;
    } thrown;
};

// The tag of the exceptions that are long jumps.
__asm__(".tagtype __c_longjmp i32\n.globl __c_longjmp\n__c_longjmp:\n");

void __wasm_setjmp(void *env, uint32_t label, void *invocation) {
    struct jump *jump = env;
    jump->invocation = invocation;
    jump->label = label;
}

uint32_t __wasm_setjmp_test(void *env, void *invocation) {
    struct jump *jump = env;
    return jump->invocation == invocation ? jump->label : 0;
}

void __wasm_longjmp(void *env, int value) {
    struct jump *jump = env;
    jump->thrown.env = env;
    jump->thrown.value = value == 0 ? 1 : value;
    __asm__ volatile("local.get %0\n\tthrow __c_longjmp" ::"r"(&jump->thrown));
    __builtin_unreachable();
}
