/* A connector as somebody writes it who has only read about the interface: wasi-libc and nothing else.

   python -m ziglang cc -target wasm32-wasi -O2 -o connector.wasm connector.c
*/
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define HOST(name) __attribute__((import_module("aileron_host"), import_name(name)))
HOST("log") void host_log(const char *level, size_t level_len, const char *msg, size_t msg_len);
HOST("http_request") int http_request(const char *envelope, size_t len);
HOST("http_response_size") int http_response_size(void);
HOST("http_response_status") int http_response_status(void);
HOST("http_response_read") int http_response_read(void *to, size_t len);

static char *input;

static char *read_all(void) {
  size_t room = 64, used = 0, got;
  char *text = malloc(room);
  while ((got = fread(text + used, 1, room - used - 1, stdin)) > 0) {
    used += got;
    if (used + 1 == room) text = realloc(text, room *= 2);
  }
  text[used] = 0;
  return text;
}

/* The value of a member whose key occurs once: text without escapes, or a number. */
static const char *member(const char *key) {
  static char value[4096];
  char quoted[64];
  size_t n = 0;
  snprintf(quoted, sizeof quoted, "\"%s\"", key);
  const char *at = strstr(input, quoted);
  if (!at) return "";
  for (at += strlen(quoted); *at == ' ' || *at == ':'; at++) continue;
  const char *end = *at == '"' ? "\"" : ",}] ";
  if (*at == '"') at++;
  while (*at && !strchr(end, *at) && n + 1 < sizeof value) value[n++] = *at++;
  value[n] = 0;
  return value;
}

static int fail(const char *class, const char *message) {
  printf("{\"error\":{\"class\":\"%s\",\"message\":\"%s\"}}\n", class, message);
  return 1;
}

static int world(char **argv, int argc) {
  unsigned random[2] = {0, 0};
  getentropy(random, sizeof random);
  FILE *file = fopen("/etc/passwd", "r"), *own = fopen("note.txt", "w");
  printf("{\"output\":{\"argc\":%d,\"name\":\"%s\",\"home\":%s,\"year\":%d,\"random\":%s,"
         "\"file\":%s,\"own\":%s,\"folder\":%s,\"tty\":%d,\"largest\":%lld,\"unsigned\":%llu,\"third\":%.17g}}",
         argc, argc ? argv[0] : "", getenv("HOME") ? "\"set\"" : "null",
         (int)(1970 + time(NULL) / 31556952), random[0] != random[1] ? "true" : "false",
         file ? "true" : "false", own ? "true" : "false", opendir("/") ? "true" : "false",
         isatty(0) + isatty(1), (long long)INT64_MAX, (unsigned long long)UINT64_MAX, 1.0 / 3);
  return 0;
}

static int get(void) {
  char envelope[8192], url[4096];
  snprintf(url, sizeof url, "%s", member("url"));
  snprintf(envelope, sizeof envelope,
           "{\"method\":\"%s\",\"url\":\"%s\",\"headers\":{\"Accept\":\"application/json, text/*;q=0.5\","
           "\"X-Name\":\"J\xc3\xbcrgen\"},\"body\":\"<\xc3\xa9>\"}",
           member("method"), url);
  int code = http_request(envelope, strlen(envelope));
  if (code != 0) {
    snprintf(envelope, sizeof envelope, "http_request denied or failed (rc=%d)", code);
    return fail("connector_runtime_error", envelope);
  }
  int size = http_response_size(), status = http_response_status();
  unsigned char *body = malloc(size + 1);
  if (!body) return fail("connector_runtime_error", "no memory for the answer");
  int got = http_response_read(body, size);
  host_log("info", 4, "read", 4);
  if (status >= 400) return fail("external_api_error", "the service said no");
  uint32_t sum = 0;
  for (int i = 0; i < size; i++) sum = sum * 31 + body[i];
  printf("{\"output\":{\"status\":%d,\"size\":%d,\"got\":%d,\"sum\":%u}}", status, size, got, sum);
  return 0;
}

int main(int argc, char **argv) {
  char op[64];
  input = read_all();
  snprintf(op, sizeof op, "%s", member("op"));
  if (!strcmp(op, "echo")) {
    const char *args = strchr(strstr(input, "\"args\""), '{');
    printf("{\"output\":%.*s}\n", (int)(strrchr(args, '}') - args), args);
    return 0;
  }
  if (!strcmp(op, "world")) return world(argv, argc);
  if (!strcmp(op, "get")) return get();
  return fail("connector_runtime_error", "unknown op");
}
