#include "codegen/c_names.h"

#include <cctype>
#include <sstream>
#include <unordered_set>

#include "codegen/symbols.h"
#include "ir/build.h"
#include "support/ranges.h"

namespace tilewright::codegen {
namespace {

constexpr const char* kKeywords =
    "alignas alignof and and_eq asm atomic auto bitand bitor bool break case catch char char16_t char32_t char8_t "
    "class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype "
    "default "
    "delete do double dynamic_cast else enum explicit export extern false final float for friend goto if import inline "
    "int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected "
    "public register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast "
    "struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union "
    "unsigned "
    "using virtual void volatile wchar_t while xor xor_eq "
    "main linux unix i386 std";

/// Each also with f and l behind it.
constexpr const char* kMath =
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fdim "
    "finite floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llrint llround log "
    "log10 "
    "log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo rint round "
    "roundeven scalb scalbln scalbn signbit significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn "
    "cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow cproj creal csin "
    "csinh "
    "csqrt ctan ctanh";

constexpr const char* kLibrary =
    "isfinite isnormal isgreater isgreaterequal isless islessequal islessgreater isunordered fpclassify INFINITY NAN "
    "HUGE_VAL math_errhandling float_t double_t complex imaginary I "
    "isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit toascii "
    "tolower toupper errno assert "
    "abs labs llabs imaxabs div ldiv lldiv imaxdiv abort atexit at_quick_exit exit quick_exit getenv setenv system "
    "malloc "
    "calloc realloc free aligned_alloc posix_memalign alloca memalign valloc qsort bsearch rand srand random srandom "
    "atof atoi atol atoll strtod strtof strtold strtol strtoll strtoul strtoull mblen mbtowc wctomb mbstowcs wcstombs "
    "memchr memcmp memcpy memmove mempcpy memset memccpy strcat strchr strcmp strcoll strcpy strcspn strdup strerror "
    "strlen strncat strncmp strncpy strndup strnlen strpbrk strrchr strspn strstr strtok strxfrm stpcpy stpncpy "
    "strcasecmp strncasecmp strsep strsignal index rindex bcmp bcopy bzero ffs ffsl ffsll "
    "fopen fclose fflush fread fwrite fgetc fgets fputc fputs fprintf fscanf fseek ftell fgetpos fsetpos feof ferror "
    "freopen clearerr getc getchar gets printf putc putchar puts perror remove rename rewind scanf setbuf setvbuf "
    "snprintf sprintf sscanf tmpfile tmpnam ungetc vprintf vfprintf vsprintf vsnprintf vscanf vfscanf vsscanf dprintf "
    "fdopen fileno popen pclose stdin stdout stderr EOF FILE fpos_t strfmon gettext dgettext dcgettext "
    "time clock difftime mktime ctime gmtime localtime asctime strftime timespec_get clock_t time_t tm timespec "
    "setjmp longjmp jmp_buf signal raise sig_atomic_t setlocale localeconv lconv va_list va_start va_arg va_end "
    "va_copy "
    "wcscat wcschr wcscmp wcscpy wcslen wcsncat wcsncmp wcsncpy wcsstr wmemchr wmemcmp wmemcpy wmemset wprintf "
    "iswalpha "
    "iswalnum iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit towlower "
    "towupper wint_t wctype_t mbstate_t "
    "open close read write lseek dup dup2 pipe fork vfork execl execle execlp execv execve execvp wait waitpid kill "
    "sleep usleep alarm pause link unlink access chdir getcwd rmdir mkdir stat fstat lstat chmod chown getpid getppid "
    "getuid isatty select poll socket bind listen accept connect send recv shutdown mmap munmap mprotect dlopen dlsym "
    "dlclose environ optarg optind opterr getopt sync truncate ftruncate nice tee splice "
    "size_t ssize_t ptrdiff_t max_align_t nullptr_t NULL offsetof off_t pid_t "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t int_least8_t int_least16_t int_least32_t "
    "int_least64_t uint_least8_t uint_least16_t uint_least32_t uint_least64_t int_fast8_t int_fast16_t int_fast32_t "
    "int_fast64_t uint_fast8_t uint_fast16_t uint_fast32_t uint_fast64_t intptr_t uintptr_t intmax_t uintmax_t "
    "tilewright_module tw";  // tw, because of tw_last_error

constexpr const char* kPrefixes[] = {"tw_",    "TW_",    "DL",       "kDL",    "TILEWRIGHT_", "INT8_",
                                     "INT16_", "INT32_", "INT64_",   "INT_",   "INTPTR_",     "INTMAX_",
                                     "UINT",   "SIZE_",  "PTRDIFF_", "WCHAR_", "WINT_",       "SIG_ATOMIC_"};

std::unordered_set<std::string> taken_names() {
  std::unordered_set<std::string> names;
  std::string word;
  for (const char* list : {kKeywords, kLibrary}) {
    for (std::istringstream words(list); words >> word;) names.insert(word);
  }
  for (std::istringstream words(kMath); words >> word;) {
    for (const char* suffix : {"", "f", "l"}) names.insert(word + suffix);
  }
  for (const char* suffix : {"", "f", "l"}) {  // these have the suffix in their middle
    for (const char* name : {"lgamma", "gamma"}) names.insert(std::string(name) + suffix + "_r");
  }
  for (const Symbol& symbol : library_symbols()) names.emplace(symbol.name);
  return names;
}

bool is_taken(const std::string& name) {
  static const std::unordered_set<std::string> kTaken = taken_names();
  return kTaken.count(name) != 0 || any_of(kPrefixes, [&](const char* prefix) { return name.starts_with(prefix); });
}

std::string spelling(std::string_view name, std::string_view fallback) {
  std::string text;
  for (unsigned char c : name.empty() ? fallback : name) {
    bool is_plain = c < 128 && (std::isalnum(c) || c == '_');
    text += is_plain ? static_cast<char>(c) : '_';
  }
  if (text[0] == '_' || std::isdigit(static_cast<unsigned char>(text[0]))) text.insert(text.begin(), 'k');
  if (is_taken(text)) text += '_';
  return text;
}

constexpr const char* kDerived[] = {"_last_error", "_arrays"};

}  // namespace

bool CNames::is_free(const std::string& name, bool is_kernel) const {
  if (used_.count(name)) return false;
  return !is_kernel || none_of(kDerived, [&](const char* suffix) { return used_.count(name + suffix) != 0; });
}

std::string CNames::take(std::string_view name, std::string_view fallback, bool is_kernel) {
  const std::string wanted = spelling(name, fallback);
  std::string found = wanted;
  for (int i = 1; !is_free(found, is_kernel); ++i) found = wanted + "_" + std::to_string(i);
  used_.insert(found);
  if (is_kernel) {
    for (const char* suffix : kDerived) used_.insert(found + suffix);
  }
  return found;
}

std::map<std::string, std::string> c_kernel_names(const Ref<Module>& module) {
  CNames names;
  std::map<std::string, std::string> result;
  for (const auto& [key, func] : module->functions) {
    const PrimFunc* prim = func.as<PrimFunc>();
    const NodeRef symbol = prim ? prim->attrs.get("global_symbol") : NodeRef();
    if (!symbol.is<StringImm>()) continue;
    const std::string& name = symbol.as<StringImm>()->value;
    result.emplace(name, names.take(name, "kernel", true));
  }
  return result;
}

}  // namespace tilewright::codegen
