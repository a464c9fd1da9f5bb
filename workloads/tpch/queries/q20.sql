-- TPC-H Q20, potential part promotion
-- set color = forest
-- set date = 1994-01-01
-- set nation = CANADA
select s_name, s_address
from supplier
join nation on n_nationkey = s_nationkey
where n_name = '${nation}'
  and s_suppkey in (
    select ps_suppkey
    from partsupp
    where ps_partkey in (select p_partkey from part where p_name like '${color}%')
      and ps_availqty > (
        select 0.5 * sum(l_quantity)
        from lineitem
        where l_partkey = ps_partkey
          and l_suppkey = ps_suppkey
          and l_shipdate >= date '${date}'
          and l_shipdate < date '${date}' + interval '1' year
      )
  )
order by s_name
