/* Functions from a file's symbols: those for the debugger where they are there, else those for the loader. */
#define _GNU_SOURCE
#include "functions.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct names {
	const ElfW(Sym) *symbols;
	size_t count;
	const char *strings;
	size_t string_bytes;
};

static int read_names(const char *file, size_t bytes, struct names *names)
{
	const ElfW(Ehdr) *head = (const void *)file;
	const unsigned kinds[] = { SHT_SYMTAB, SHT_DYNSYM };
	if (bytes < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_shentsize != sizeof(ElfW(Shdr)) || head->e_shoff % sizeof(uint64_t) != 0 || head->e_shoff > bytes ||
	    (bytes - head->e_shoff) / sizeof(ElfW(Shdr)) < head->e_shnum)
		return 0;
	const ElfW(Shdr) *sections = (const void *)(file + head->e_shoff);
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < head->e_shnum; i++) {
			const ElfW(Shdr) *table = &sections[i];
			if (table->sh_type != kinds[k] || table->sh_link >= head->e_shnum)
				continue;
			const ElfW(Shdr) *strings = &sections[table->sh_link];
			if (table->sh_offset % sizeof(uint64_t) != 0 || table->sh_offset > bytes ||
			    bytes - table->sh_offset < table->sh_size || strings->sh_offset > bytes ||
			    bytes - strings->sh_offset < strings->sh_size || strings->sh_size == 0 ||
			    file[strings->sh_offset + strings->sh_size - 1] != 0)
				continue;
			*names = (struct names){ (const void *)(file + table->sh_offset), table->sh_size / sizeof(ElfW(Sym)),
						 file + strings->sh_offset, strings->sh_size };
			return 1;
		}
	}
	return 0;
}

static void visit_functions(const struct names *names, void (*visit)(void *, const char *, uint64_t, uint64_t), void *given)
{
	for (size_t s = 0; s < names->count; s++) {
		const ElfW(Sym) *symbol = &names->symbols[s];
		if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
		    symbol->st_name < names->string_bytes)
			visit(given, names->strings + symbol->st_name, symbol->st_value, symbol->st_size);
	}
}

void each_function(const char *path, void (*visit)(void *, const char *name, uint64_t linked, uint64_t bytes), void *given)
{
	struct stat about;
	struct names names;
	int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (file < 0)
		return;
	if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
		char *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
		if (bytes != MAP_FAILED) {
			if (read_names(bytes, (size_t)about.st_size, &names))
				visit_functions(&names, visit, given);
			munmap(bytes, (size_t)about.st_size);
		}
	}
	syscall(SYS_close, file);
}
