import osd

p = osd.partition(65536, 0)
if not p.exists():
    p.create()
p.get() # get reference to the partition

u = osd.userobject(65536, 65536)
if not u.exists():
    u.create()
u.get() # get reference to the user object

# set some attributes
attrs = [(10, 3, "attribute"), (11, 3, 0xdeadbeef)]
u.setattr(attrs)

# get the attributes
attrs = [(10, 3), (11, 3)]
print(u.getattr(attrs))

# write to the user object
u.data.write("Hello World\n")

# read from user object
for l in u.data:
    print(l)

u.put()
u.remove()

p.put()
p.remove()
