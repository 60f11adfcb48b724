// The one exception kernels leave by: a message that says what was wrong and what would be right.
#pragma once
#include <cstddef>
#include <exception>

namespace pto {

class Error : public std::exception {
public:
    const char* what() const noexcept override { return text; }
    char text[320];
};

namespace isa {

// Formats like printf and throws pto::Error (aborts with the message when exceptions are off).
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] inline void fail(const char* format, ...) {
    Error error;
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    __builtin_vsnprintf(error.text, sizeof(error.text), format, arguments);
    __builtin_va_end(arguments);
#if defined(__cpp_exceptions)
    throw error;
#else
    __builtin_printf("pto: %s\n", error.text);
    __builtin_abort();
#endif
}

template <class>
inline constexpr bool kAlwaysFalse = false;

}  // namespace isa
}  // namespace pto
