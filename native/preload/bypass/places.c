/* Finds the places of sites in what is loaded: functions by the symbols of their file, calls by their address.
 *
 * Every loaded file is looked through once, when the program starts or when the first large copy comes from it, and the
 * places of all sites in it are kept as ranges of return addresses. After dlclose another file may lie where the first one
 * lay; a copy then goes the wrong one of two ways, and both copy right. */
#define _GNU_SOURCE
#include "places.h"
#include "functions.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define MOST_TEXT 8192
#define MOST_RANGES 512
#define MOST_MODULES 1024
#define MOST_PATH 4096

struct place {
	const char *name; /* of the function, or of the file without its directories */
	size_t length;
	uint64_t linked;
	int is_address;
};

struct site {
	struct place call, caller;
	int has_caller;
};

/* Return addresses from `from` to before `to` come from this place: of site `site`, the call or the caller. */
struct range {
	uintptr_t from, to;
	unsigned site;
	int is_caller;
};

static char text[MOST_TEXT], program[MOST_PATH];
static struct site sites[MOST_SITES];
static unsigned site_count, found[MOST_SITES];

static struct range ranges[MOST_RANGES];
static atomic_uint range_count;
static const void *_Atomic modules[MOST_MODULES];
static atomic_uint module_count;
static atomic_flag learning = ATOMIC_FLAG_INIT;

/* The linker's name for the beginning of this library. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static int (*find_object)(void *, struct dl_find_object *);

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static int is_named(const struct place *place, const char *name)
{
	return strncmp(name, place->name, place->length) == 0 && !name[place->length];
}

/* The compiler's copies of a function have its name and a suffix: keep.part.0. */
static int is_function_of(const struct place *place, const char *name)
{
	return strncmp(name, place->name, place->length) == 0 && (!name[place->length] || name[place->length] == '.');
}

static void keep(uintptr_t from, uintptr_t to, unsigned site, int is_caller)
{
	unsigned at = atomic_load(&range_count);
	if (at == MOST_RANGES)
		return;
	ranges[at] = (struct range){ from, to, site, is_caller };
	found[site] += !is_caller;
	atomic_store_explicit(&range_count, at + 1, memory_order_release);
}

/* Bytes of the call instruction at `code`, 0 for anything else: call rel32, or call through a register or memory. */
static unsigned call_bytes(const unsigned char *code)
{
	unsigned at = 0;
	while (at < 4 && (code[at] == 0xf2 || code[at] == 0x67 || code[at] == 0x3e || (code[at] & 0xf0) == 0x40))
		at++;
	if (code[at] == 0xe8)
		return at + 5;
	if (code[at] != 0xff || (code[at + 1] >> 3 & 7) != 2)
		return 0;
	unsigned mode = code[at + 1] >> 6, base = code[at + 1] & 7, bytes = at + 2;
	if (mode != 3 && base == 4)
		base = code[bytes++] & 7, base = base == 5 && mode == 0 ? 5 : 0;
	if (mode == 2 || (mode == 0 && base == 5))
		return bytes + 4;
	return bytes + (mode == 1);
}

struct module {
	uintptr_t base; /* what is added to linked addresses */
	const char *path;
	const ElfW(Phdr) *segments;
	unsigned segment_count;
};

static int is_code(const struct module *module, uint64_t linked, uint64_t bytes)
{
	for (unsigned i = 0; i < module->segment_count; i++) {
		const ElfW(Phdr) *segment = &module->segments[i];
		if (segment->p_type == PT_LOAD && (segment->p_flags & (PF_X | PF_R)) == (PF_X | PF_R) &&
		    linked >= segment->p_vaddr && linked - segment->p_vaddr < segment->p_filesz &&
		    segment->p_filesz - (linked - segment->p_vaddr) >= bytes)
			return 1;
	}
	return 0;
}

/* The loader lists a library under the name it was loaded by, which is often a link to the file's own. */
static int is_file(const struct place *place, const char *path)
{
	char target[MOST_PATH];
	if (is_named(place, base_name(path)))
		return 1;
	ssize_t length = readlink(path, target, sizeof target - 1);
	if (length <= 0)
		return 0;
	target[length] = 0;
	return is_named(place, base_name(target));
}

static void look_for_call(const struct module *module, const struct place *place, unsigned site, int is_caller)
{
	enum { LONGEST = 15 };
	if (!is_file(place, module->path) || !is_code(module, place->linked, LONGEST))
		return;
	uintptr_t call = module->base + place->linked;
	unsigned bytes = call_bytes((const unsigned char *)call);
	if (bytes)
		keep(call + bytes, call + bytes + 1, site, is_caller);
}

static void look_for_function(void *given, const char *name, uint64_t linked, uint64_t bytes)
{
	const struct module *module = given;
	/* A call may be a function's last instruction, so its return address the first behind the function. */
	uintptr_t from = module->base + linked + 1, to = from + bytes;
	for (unsigned i = 0; i < site_count; i++) {
		if (!sites[i].call.is_address && is_function_of(&sites[i].call, name))
			keep(from, to, i, 0);
		if (sites[i].has_caller && !sites[i].caller.is_address && is_function_of(&sites[i].caller, name))
			keep(from, to, i, 1);
	}
}

static void learn_module(struct module *module)
{
	int by_function = 0;
	for (unsigned i = 0; i < site_count; i++) {
		const struct site *site = &sites[i];
		if (site->call.is_address)
			look_for_call(module, &site->call, i, 0);
		if (site->has_caller && site->caller.is_address)
			look_for_call(module, &site->caller, i, 1);
		by_function |= !site->call.is_address || (site->has_caller && !site->caller.is_address);
	}
	if (by_function)
		each_function(module->path, look_for_function, module);
}

static int is_known(const void *module)
{
	unsigned count = atomic_load_explicit(&module_count, memory_order_acquire);
	for (unsigned i = 0; i < count; i++)
		if (atomic_load_explicit(&modules[i], memory_order_relaxed) == module)
			return 1;
	return count == MOST_MODULES;
}

static void note_module(const void *module)
{
	unsigned at = atomic_load(&module_count);
	atomic_store(&modules[at], module);
	atomic_store_explicit(&module_count, at + 1, memory_order_release);
}

static int learn_loaded(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	const char *path = object->dlpi_name && object->dlpi_name[0] ? object->dlpi_name : program;
	struct module module = { object->dlpi_addr, path, object->dlpi_phdr, object->dlpi_phnum };
	if (object->dlpi_phnum && !is_known(object->dlpi_phdr)) {
		note_module(object->dlpi_phdr);
		learn_module(&module);
	}
	return 0;
}

/* The file at a return address; 0 where there is none, or none that can be read. */
static int find_module(uintptr_t returns, struct module *module)
{
	struct dl_find_object object;
	if (!find_object || find_object((void *)returns, &object) != 0 || !object.dlfo_link_map)
		return 0;
	const struct link_map *map = object.dlfo_link_map;
	const ElfW(Ehdr) *head = object.dlfo_map_start;
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phoff > 4096 - sizeof(ElfW(Phdr)) * head->e_phnum)
		return 0;
	const ElfW(Phdr) *segments = (const void *)((const char *)head + head->e_phoff);
	const char *path = map->l_name && map->l_name[0] ? map->l_name : program;
	*module = (struct module){ map->l_addr, path, segments, head->e_phnum };
	return 1;
}

int learn_place(uintptr_t returns)
{
	struct module module;
	if (!find_module(returns, &module) || is_known(module.segments))
		return 1;
	if (atomic_flag_test_and_set(&learning))
		return 0;
	if (!is_known(module.segments)) {
		note_module(module.segments);
		learn_module(&module);
	}
	atomic_flag_clear(&learning);
	return 1;
}

/* The function at an address. */
struct sought {
	uint64_t linked;
	char *name;
	size_t room;
	int found;
};

static void look_for_address(void *given, const char *name, uint64_t linked, uint64_t bytes)
{
	struct sought *sought = given;
	/* Without the compiler's suffix, as is_function_of takes it. */
	size_t length = strcspn(name, ".");
	if (sought->linked - linked - 1 >= bytes || length == 0 || length >= sought->room || memchr(name, '@', length))
		return;
	memcpy(sought->name, name, length);
	sought->name[length] = 0;
	sought->found = 1;
}

/* Some instructions can be read in two ways; each way that ends at the return address names it. */
static unsigned call_before(const struct module *module, uintptr_t returns)
{
	enum { LONGEST = 12, LOOKED_AT = 15 };
	for (unsigned bytes = 2; bytes <= LONGEST; bytes++)
		if (is_code(module, returns - bytes - module->base, LOOKED_AT) &&
		    call_bytes((const unsigned char *)returns - bytes) == bytes)
			return bytes;
	return 0;
}

static int name_by_address(const struct module *module, uintptr_t returns, char *name, size_t room)
{
	const char *file = base_name(module->path);
	size_t length = strlen(file);
	unsigned call = call_before(module, returns);
	if (!call || length + sizeof "+0x0123456789abcdef" > room)
		return 0;
	char *end = stpcpy(stpcpy(name, file), "+0x");
	uint64_t linked = returns - call - module->base;
	int digits = 1;
	while (digits < 16 && linked >> digits * 4)
		digits++;
	while (digits--)
		*end++ = "0123456789abcdef"[linked >> digits * 4 & 15];
	*end = 0;
	return 1;
}

int name_place(uintptr_t returns, char *name, size_t room)
{
	struct module module;
	if (!find_module(returns, &module))
		return 0;
	struct sought sought = { returns - module.base, name, room, 0 };
	each_function(module.path, look_for_address, &sought);
	return sought.found || name_by_address(&module, returns, name, room);
}

static int read_place(char *from, char *to, struct place *place)
{
	*to = 0;
	char *plus = NULL;
	for (char *at = strstr(from, "+0x"); at; at = strstr(at + 1, "+0x"))
		plus = at;
	*place = (struct place){ .name = from, .length = (size_t)((plus ? plus : to) - from), .is_address = plus != NULL };
	for (char *digit = plus ? plus + 3 : to; *digit; digit++) {
		unsigned value = *digit <= '9' ? *digit - '0' : (*digit | 32) - 'a' + 10;
		if (value > 15)
			return 0;
		place->linked = place->linked << 4 | value;
	}
	return place->length > 0;
}

static void read_site(char *from, char *to)
{
	struct site *site = &sites[site_count];
	char *at = memchr(from, '@', (size_t)(to - from));
	site->has_caller = at != NULL;
	if (at && !read_place(at + 1, to, &site->caller))
		return;
	site_count += read_place(from, at ? at : to, &site->call);
}

unsigned learn_places(const char *given)
{
	size_t length = given ? strlen(given) : 0;
	if (length == 0 || length >= sizeof text)
		return 0;
	/* The environment is the program's own, to change as it likes. */
	memcpy(text, given, length + 1);
	for (char *line = text, *end = text + length; line < end && site_count < MOST_SITES;) {
		char *next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		read_site(line, next);
		line = next + 1;
	}
	ssize_t name = readlink("/proc/self/exe", program, sizeof program - 1);
	program[name > 0 ? name : 0] = 0;
	find_object = (int (*)(void *, struct dl_find_object *))dlsym(RTLD_DEFAULT, "_dl_find_object");
	/* Functions of this library may be called as the program's are. */
	note_module((const char *)&__ehdr_start + __ehdr_start.e_phoff);
	dl_iterate_phdr(learn_loaded, NULL);
	return site_count;
}

unsigned places_of(unsigned site)
{
	return found[site];
}

int names_caller(unsigned site)
{
	return sites[site].has_caller;
}

int is_from(uintptr_t returns, unsigned site, int is_caller)
{
	unsigned count = atomic_load_explicit(&range_count, memory_order_acquire);
	for (unsigned i = 0; i < count; i++) {
		const struct range *range = &ranges[i];
		if (range->is_caller == is_caller && range->site == site && returns - range->from < range->to - range->from)
			return 1;
	}
	return 0;
}
